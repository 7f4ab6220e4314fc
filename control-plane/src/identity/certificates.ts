// The six kinds of certificates: root, issuing CA, node, server of a listener, service, ingress. All keys are
// P-256. What makes a certificate one for a node or an ingress is read by service/src/node-identity.

import { randomBytes, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import { CLIENT_AUTH } from "@holdfast/service/node-identity/certificate";
import { x509 } from "./x509.ts";

const P256 = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNED = { name: "ECDSA", hash: "SHA-256" } as const;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const ROOT_LIFE_MS = 3652 * DAY_MS;
const ISSUING_LIFE_MS = 731 * DAY_MS;
export const NODE_LIFE_MS = 24 * HOUR_MS;
export const SERVER_LIFE_MS = 7 * DAY_MS;
export const SERVICE_LIFE_MS = 24 * HOUR_MS;
/** A node whose clock is a little behind may use its certificate at once. */
export const BACK_DATED_MS = 5 * MINUTE_MS;

const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";

export type KeyPair = { privateKey: webcrypto.CryptoKey; publicKey: webcrypto.CryptoKey };
export type Signer = { certificate: x509.X509Certificate; privateKey: webcrypto.CryptoKey };
export type Life = { notBefore: Date; notAfter: Date };

export function makeKeyPair(): Promise<KeyPair> {
  return webcrypto.subtle.generateKey(P256, true, ["sign", "verify"]);
}

export function importPrivateKey(pkcs8: Uint8Array<ArrayBuffer>): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey("pkcs8", pkcs8, P256, true, ["sign"]);
}

/** From now, or from a little before; ends with its issuer at the latest. */
export function lifeOf(now: Date, lastsMs: number, options: { backDatedMs?: number; issuer?: Signer } = {}): Life {
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
    ...lifeOf(now, ROOT_LIFE_MS, { backDatedMs: BACK_DATED_MS }),
    extensions: await authorityExtensions(keys.publicKey, 1),
  });
}

export async function makeIssuing(root: Signer, keys: KeyPair, now: Date): Promise<x509.X509Certificate> {
  return signed(root, {
    subject: "CN=Holdfast issuing CA",
    publicKey: keys.publicKey,
    life: lifeOf(now, ISSUING_LIFE_MS, { backDatedMs: BACK_DATED_MS, issuer: root }),
    extensions: await authorityExtensions(keys.publicKey, 0),
  });
}

export async function makeNodeCertificate(
  issuer: Signer,
  node: { id: string; publicKey: x509.PublicKey; life: Life },
): Promise<x509.X509Certificate> {
  return signed(issuer, {
    subject: `CN=${node.id}`,
    publicKey: node.publicKey,
    life: node.life,
    extensions: await leafExtensions(node.publicKey, [CLIENT_AUTH], [{ type: "url", value: nodeUri(node.id) }]),
  });
}

export async function makeServerCertificate(
  issuer: Signer,
  server: { names: readonly string[]; publicKey: x509.PublicKey | webcrypto.CryptoKey; life: Life },
): Promise<x509.X509Certificate> {
  return signed(issuer, {
    subject: "CN=Holdfast node-facing API",
    publicKey: server.publicKey,
    life: server.life,
    extensions: await leafExtensions(server.publicKey, [SERVER_AUTH], server.names.map(generalName)),
  });
}

/** Of the proxy in front: on its connections, and no others, a node's certificate may come in a header. */
export async function makeIngressCertificate(
  issuer: Signer,
  ingress: { name: string; mark: string; publicKey: x509.PublicKey; life: Life },
): Promise<x509.X509Certificate> {
  const uri = { type: "url" as const, value: `holdfast://ingress/${ingress.name}` };
  return signed(issuer, {
    subject: `CN=${ingress.mark}`,
    publicKey: ingress.publicKey,
    life: ingress.life,
    extensions: await leafExtensions(ingress.publicKey, [CLIENT_AUTH], [uri]),
  });
}

/** For both ends of TLS: it asks other services, and nodes reach it by these names. */
export async function makeServiceCertificate(
  issuer: Signer,
  made: { service: ServiceIdentity; names: readonly string[]; publicKey: x509.PublicKey; life: Life },
): Promise<x509.X509Certificate> {
  const names = [{ type: "url" as const, value: serviceUri(made.service) }, ...made.names.map(generalName)];
  return signed(issuer, {
    subject: `CN=${made.service.name}`,
    publicKey: made.publicKey,
    life: made.life,
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

/** The process that a certificate of ours was made for; undefined when it was made for anything else. */
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
    life: Life;
    extensions: x509.Extension[];
  },
): Promise<x509.X509Certificate> {
  const ofIssuer = await x509.AuthorityKeyIdentifierExtension.create(issuer.certificate.publicKey);
  return x509.X509CertificateGenerator.create({
    serialNumber: makeSerial(),
    subject: made.subject,
    issuer: issuer.certificate.subject,
    ...made.life,
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
