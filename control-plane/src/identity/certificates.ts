// The six kinds of certificates: root, issuing CA, node, server of a listener, service, ingress. All keys are
// P-256. service/src/node-identity reads what identifies a node's or an ingress's certificate.

import { randomBytes, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import { CLIENT_AUTH } from "@holdfast/service/node-identity/certificate";
import { x509 } from "./x509.ts";

const P256 = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNED = { name: "ECDSA", hash: "SHA-256" } as const;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const ROOT_VALIDITY_MS = 3652 * DAY_MS;
const ISSUING_VALIDITY_MS = 731 * DAY_MS;
export const NODE_VALIDITY_MS = 24 * HOUR_MS;
export const SERVER_VALIDITY_MS = 7 * DAY_MS;
export const SERVICE_VALIDITY_MS = 24 * HOUR_MS;
/** A node whose clock is a little behind may use its certificate at once. */
export const BACK_DATED_MS = 5 * MINUTE_MS;

const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";

export type KeyPair = { privateKey: webcrypto.CryptoKey; publicKey: webcrypto.CryptoKey };
export type Signer = { certificate: x509.X509Certificate; privateKey: webcrypto.CryptoKey };
export type Validity = { notBefore: Date; notAfter: Date };

export function makeKeyPair(): Promise<KeyPair> {
  return webcrypto.subtle.generateKey(P256, true, ["sign", "verify"]);
}

export function importPrivateKey(pkcs8: Uint8Array<ArrayBuffer>): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey("pkcs8", pkcs8, P256, true, ["sign"]);
}

/** Begins now, or `backDatedMs` earlier; ends no later than its issuer. */
export function validityFrom(
  now: Date,
  lastsMs: number,
  options: { backDatedMs?: number; issuer?: Signer } = {},
): Validity {
  const ends = now.getTime() + lastsMs;
  const issuerEnds = options.issuer?.certificate.notAfter.getTime() ?? ends;
  return {
    notBefore: wholeSecond(now.getTime() - (options.backDatedMs ?? 0)),
    notAfter: wholeSecond(Math.min(ends, issuerEnds)),
  };
}

export async function makeRoot(keys: KeyPair, now: Date): Promise<x509.X509Certificate> {
  return x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: makeSerial(),
    name: "CN=Holdfast root CA",
    keys,
    signingAlgorithm: SIGNED,
    ...validityFrom(now, ROOT_VALIDITY_MS, { backDatedMs: BACK_DATED_MS }),
    extensions: await authorityExtensions(keys.publicKey, 1),
  });
}

export async function makeIssuing(root: Signer, keys: KeyPair, now: Date): Promise<x509.X509Certificate> {
  return signed(root, {
    subject: "CN=Holdfast issuing CA",
    publicKey: keys.publicKey,
    validity: validityFrom(now, ISSUING_VALIDITY_MS, { backDatedMs: BACK_DATED_MS, issuer: root }),
    extensions: await authorityExtensions(keys.publicKey, 0),
  });
}

export async function makeNodeCertificate(
  issuer: Signer,
  node: { id: string; publicKey: x509.PublicKey; validity: Validity },
): Promise<x509.X509Certificate> {
  return signed(issuer, {
    subject: `CN=${node.id}`,
    publicKey: node.publicKey,
    validity: node.validity,
    extensions: await leafExtensions(node.publicKey, [CLIENT_AUTH], [{ type: "url", value: nodeUri(node.id) }]),
  });
}

export async function makeServerCertificate(
  issuer: Signer,
  server: { names: readonly string[]; publicKey: x509.PublicKey | webcrypto.CryptoKey; validity: Validity },
): Promise<x509.X509Certificate> {
  return signed(issuer, {
    subject: "CN=Holdfast node-facing API",
    publicKey: server.publicKey,
    validity: server.validity,
    extensions: await leafExtensions(server.publicKey, [SERVER_AUTH], server.names.map(generalName)),
  });
}

/** For the proxy in front: only its connections may carry a node's certificate in a header. */
export async function makeIngressCertificate(
  issuer: Signer,
  ingress: { name: string; mark: string; publicKey: x509.PublicKey; validity: Validity },
): Promise<x509.X509Certificate> {
  const uri = { type: "url" as const, value: `holdfast://ingress/${ingress.name}` };
  return signed(issuer, {
    subject: `CN=${ingress.mark}`,
    publicKey: ingress.publicKey,
    validity: ingress.validity,
    extensions: await leafExtensions(ingress.publicKey, [CLIENT_AUTH], [uri]),
  });
}

/** For both ends of TLS: the service calls other services, and nodes reach it by these names. */
export async function makeServiceCertificate(
  issuer: Signer,
  made: { service: ServiceIdentity; names: readonly string[]; publicKey: x509.PublicKey; validity: Validity },
): Promise<x509.X509Certificate> {
  const names = [{ type: "url" as const, value: serviceUri(made.service) }, ...made.names.map(generalName)];
  return signed(issuer, {
    subject: `CN=${made.service.name}`,
    publicKey: made.publicKey,
    validity: made.validity,
    extensions: await leafExtensions(made.publicKey, [CLIENT_AUTH, SERVER_AUTH], names),
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

function generalName(name: string): x509.JsonGeneralName {
  return isIP(name) ? { type: "ip", value: name } : { type: "dns", value: name };
}

function nodeUri(nodeId: string): string {
  return `holdfast://node/${nodeId}`;
}

async function signed(
  issuer: Signer,
  made: {
    subject: string;
    publicKey: x509.PublicKey | webcrypto.CryptoKey;
    validity: Validity;
    extensions: x509.Extension[];
  },
): Promise<x509.X509Certificate> {
  const ofIssuer = await x509.AuthorityKeyIdentifierExtension.create(issuer.certificate.publicKey);
  return x509.X509CertificateGenerator.create({
    serialNumber: makeSerial(),
    subject: made.subject,
    issuer: issuer.certificate.subject,
    ...made.validity,
    publicKey: made.publicKey,
    signingKey: issuer.privateKey,
    signingAlgorithm: SIGNED,
    extensions: [...made.extensions, ofIssuer],
  });
}

async function authorityExtensions(key: webcrypto.CryptoKey, pathLength: number): Promise<x509.Extension[]> {
  const { keyCertSign, cRLSign } = x509.KeyUsageFlags;
  return [
    new x509.BasicConstraintsExtension(true, pathLength, true),
    new x509.KeyUsagesExtension(keyCertSign | cRLSign, true),
    await x509.SubjectKeyIdentifierExtension.create(key),
  ];
}

async function leafExtensions(
  key: x509.PublicKey | webcrypto.CryptoKey,
  usages: string[],
  names: x509.JsonGeneralName[],
): Promise<x509.Extension[]> {
  return [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension(usages),
    new x509.SubjectAlternativeNameExtension(names),
    await x509.SubjectKeyIdentifierExtension.create(key),
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
