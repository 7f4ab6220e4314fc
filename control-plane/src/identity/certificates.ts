// The seven kinds of certificates: root, issuing CA, node, server of a listener, service, ingress, canary. All keys are
// P-256. service/src/node-identity reads what identifies a node's, an ingress's or a canary's certificate.

import { createPublicKey, type KeyObject, randomBytes, X509Certificate } from "node:crypto";
import { newPrivateKey } from "@holdfast/kit/certificate-request";
import {
  type AlternativeName,
  alternativeNames,
  authority,
  authorityKeyId,
  commonName,
  extendedKeyUsage,
  noAuthority,
  type Purpose,
  signCertificate,
  signsCertificates,
  signsMessages,
  subjectKeyId,
  subjectOf,
  type Validity,
} from "./certificate-der.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const ROOT_VALIDITY_MS = 3652 * DAY_MS;
const ISSUING_VALIDITY_MS = 731 * DAY_MS;
export const NODE_VALIDITY_MS = 24 * HOUR_MS;
export const SERVER_VALIDITY_MS = 7 * DAY_MS;
export const SERVICE_VALIDITY_MS = 24 * HOUR_MS;
/** Used at once. Longer only because the clock of an ingress may be ahead, which says nothing about what it trusts. */
export const CANARY_VALIDITY_MS = HOUR_MS;
/** A node whose clock is a little behind may use its certificate at once. */
export const BACK_DATED_MS = 5 * MINUTE_MS;

const SPKI = { type: "spki", format: "der" } as const;

/** `publicKey`, here and below: SubjectPublicKeyInfo, DER. */
export type KeyPair = { privateKey: KeyObject; publicKey: Buffer };
export type Made = { serial: string; der: Buffer };

/** A CA: its certificate and key, and what goes into all certificates that it signs. */
export type Signer = {
  certificate: X509Certificate;
  privateKey: KeyObject;
  name: Buffer;
  authorityKeyId: Buffer;
  notAfter: Date;
};

export function signerOf(der: Buffer, privateKey: KeyObject): Signer {
  const certificate = new X509Certificate(der);
  return {
    certificate,
    privateKey,
    name: subjectOf(der),
    authorityKeyId: authorityKeyId(certificate.publicKey.export(SPKI)),
    notAfter: certificate.validToDate,
  };
}

export function makeKeyPair(): KeyPair {
  const privateKey = newPrivateKey();
  return { privateKey, publicKey: createPublicKey(privateKey).export(SPKI) };
}

/** Begins now, or `backDatedMs` earlier; ends no later than its issuer. */
export function validityFrom(
  now: Date,
  lastsMs: number,
  options: { backDatedMs?: number; issuer?: Signer } = {},
): Validity {
  const ends = now.getTime() + lastsMs;
  const issuerEnds = options.issuer?.notAfter.getTime() ?? ends;
  return {
    notBefore: wholeSecond(now.getTime() - (options.backDatedMs ?? 0)),
    notAfter: wholeSecond(Math.min(ends, issuerEnds)),
  };
}

export function makeRoot({ publicKey, privateKey }: KeyPair, now: Date): Made {
  const name = commonName("Holdfast root CA");
  const serial = makeSerial();
  const der = signCertificate(
    {
      ...{ serial, issuer: name, subject: name, publicKey },
      validity: validityFrom(now, ROOT_VALIDITY_MS, { backDatedMs: BACK_DATED_MS }),
      extensions: authorityExtensions(publicKey, 1),
    },
    privateKey,
  );
  return { serial, der };
}

export function makeIssuing(root: Signer, { publicKey }: KeyPair, now: Date): Made {
  return signed(root, {
    subject: "Holdfast issuing CA",
    publicKey,
    validity: validityFrom(now, ISSUING_VALIDITY_MS, { backDatedMs: BACK_DATED_MS, issuer: root }),
    extensions: authorityExtensions(publicKey, 0),
  });
}

type Leaf = { publicKey: Buffer; validity: Validity };

export function makeNodeCertificate(issuer: Signer, node: Leaf & { id: string }): Made {
  return signed(issuer, {
    ...node,
    subject: node.id,
    extensions: leafExtensions(node.publicKey, ["client"], [{ uri: nodeUri(node.id) }]),
  });
}

export function makeServerCertificate(issuer: Signer, server: Leaf & { names: readonly string[] }): Made {
  return signed(issuer, {
    ...server,
    subject: "Holdfast node-facing API",
    extensions: leafExtensions(server.publicKey, ["server"], hosts(server.names)),
  });
}

/** For the proxy in front: only its connections may carry a node's certificate in a header. */
export function makeIngressCertificate(issuer: Signer, ingress: Leaf & { name: string; mark: string }): Made {
  const uri = `holdfast://ingress/${ingress.name}`;
  return signed(issuer, {
    ...ingress,
    subject: ingress.mark,
    extensions: leafExtensions(ingress.publicKey, ["client"], [{ uri }]),
  });
}

/** As a node's, but for its name: whatever verifies it would accept a node's, and nobody takes it for one. */
export function makeCanaryCertificate(issuer: Signer, canary: Leaf & { id: string }): Made {
  const uri = `holdfast://canary/${canary.id}`;
  return signed(issuer, {
    ...canary,
    subject: canary.id,
    extensions: leafExtensions(canary.publicKey, ["client"], [{ uri }]),
  });
}

/** For both ends of TLS: the service calls other services, and nodes reach it by these names. */
export function makeServiceCertificate(
  issuer: Signer,
  made: Leaf & { service: ServiceIdentity; names: readonly string[] },
): Made {
  const names = [{ uri: serviceUri(made.service) }, ...hosts(made.names)];
  return signed(issuer, {
    ...made,
    subject: made.service.name,
    extensions: leafExtensions(made.publicKey, ["client", "server"], names),
  });
}

export const serviceNames = ["gateway"] as const;
export type ServiceIdentity = { name: (typeof serviceNames)[number]; instanceId: string };

function serviceUri({ name, instanceId }: ServiceIdentity): string {
  return `holdfast://service/${name}/${instanceId}`;
}

const serviceSan =
  /^URI:holdfast:\/\/service\/([a-z]+)\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:, (?:DNS|IP Address):[A-Za-z0-9._:-]+)*$/;

/** The process that a certificate was issued to; undefined for all other certificates. */
export function serviceOf(certificate: { subjectAltName: string | undefined }): ServiceIdentity | undefined {
  const [, named, instanceId] = serviceSan.exec(certificate.subjectAltName ?? "") ?? [];
  const name = serviceNames.find((one) => one === named);
  return name && instanceId ? { name, instanceId } : undefined;
}

function hosts(names: readonly string[]): AlternativeName[] {
  return names.map((host) => ({ host }));
}

function nodeUri(nodeId: string): string {
  return `holdfast://node/${nodeId}`;
}

function signed(issuer: Signer, made: Leaf & { subject: string; extensions: readonly Buffer[] }): Made {
  const serial = makeSerial();
  const der = signCertificate(
    {
      serial,
      issuer: issuer.name,
      subject: commonName(made.subject),
      validity: made.validity,
      publicKey: made.publicKey,
      extensions: [...made.extensions, issuer.authorityKeyId],
    },
    issuer.privateKey,
  );
  return { serial, der };
}

function authorityExtensions(publicKey: Buffer, pathLength: number): Buffer[] {
  return [authority(pathLength), signsCertificates, subjectKeyId(publicKey)];
}

function leafExtensions(publicKey: Buffer, purposes: readonly Purpose[], names: AlternativeName[]): Buffer[] {
  return [
    noAuthority,
    signsMessages,
    extendedKeyUsage(purposes),
    alternativeNames(names),
    subjectKeyId(publicKey),
  ];
}

/** 128 bits; the first byte keeps the number positive and its hexadecimal form without leading zeros. */
function makeSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = 0x40 | ((bytes[0] ?? 0) & 0x3f);
  return bytes.toString("hex");
}

function wholeSecond(ms: number): Date {
  return new Date(Math.floor(ms / 1000) * 1000);
}
