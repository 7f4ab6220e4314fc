// An X.509 certificate in DER, signed by ECDSA with SHA-256. Which fields and extensions a certificate has is the
// same for all; what is in them is decided in certificates.ts. A library took 3.4 ms of processor time for one (ADR 34).

import { hash, type KeyObject, sign } from "node:crypto";
import { isIPv4, isIPv6 } from "node:net";
import { bitString, constructed, element, primitive, tag } from "@holdfast/kit/der";
import { read } from "./der-reader.ts";

export type Validity = { notBefore: Date; notAfter: Date };

export type CertificateContent = {
  /** Hexadecimal, of a number whose first bit is not set. */
  serial: string;
  /** A whole Name. */
  issuer: Buffer;
  subject: Buffer;
  validity: Validity;
  /** SubjectPublicKeyInfo. */
  publicKey: Buffer;
  extensions: readonly Buffer[];
};

const objectId = (hex: string) => element(tag.objectId, Buffer.from(hex, "hex"));
const COMMON_NAME = objectId("550403");
const ECDSA_WITH_SHA256 = element(tag.sequence, objectId("2a8648ce3d040302"));
const VERSION_3 = element(constructed(0), element(tag.integer, Buffer.from([2])));

export function signCertificate(content: CertificateContent, key: KeyObject): Buffer {
  const toBeSigned = element(
    tag.sequence,
    VERSION_3,
    element(tag.integer, Buffer.from(content.serial, "hex")),
    ECDSA_WITH_SHA256,
    content.issuer,
    element(tag.sequence, time(content.validity.notBefore), time(content.validity.notAfter)),
    content.subject,
    content.publicKey,
    element(constructed(3), element(tag.sequence, ...content.extensions)),
  );
  return element(tag.sequence, toBeSigned, ECDSA_WITH_SHA256, bitString(sign("sha256", toBeSigned, key)));
}

/** The subject's Name, byte for byte: issuers of certificates are compared with it. */
export function subjectOf(certificate: Buffer): Buffer {
  const [whole] = read(certificate, tag.sequence);
  const [toBeSigned] = read(whole.content, tag.sequence, tag.sequence, tag.bitString);
  const names = [tag.sequence, tag.sequence, tag.sequence] as const;
  const fields = [constructed(0), tag.integer, tag.sequence, ...names, tag.sequence, constructed(3)] as const;
  const [, , , , , subject] = read(toBeSigned.content, ...fields);
  return subject.bytes;
}

export function commonName(text: string): Buffer {
  const kind = /^[A-Za-z0-9 '()+,./:=?-]*$/.test(text) ? tag.printableString : tag.utf8String;
  const attribute = element(tag.sequence, COMMON_NAME, element(kind, Buffer.from(text)));
  return element(tag.sequence, element(tag.set, attribute));
}

/** From 2050 on, the year has four digits. */
function time(at: Date): Buffer {
  const digits = at.toISOString().replace(/[-:T]|\.\d+/g, "");
  if (at.getUTCFullYear() >= 2050) return element(tag.generalizedTime, Buffer.from(digits));
  return element(tag.utcTime, Buffer.from(digits.slice(2)));
}

const TRUE = element(tag.boolean, Buffer.from([0xff]));

function extension(id: string, value: Buffer, options: { critical?: boolean } = {}): Buffer {
  const critical = options.critical ? [TRUE] : [];
  return element(tag.sequence, objectId(id), ...critical, element(tag.octetString, value));
}

const BASIC_CONSTRAINTS = "551d13";
const KEY_USAGE = "551d0f";
const EXTENDED_KEY_USAGE = "551d25";
const SUBJECT_ALTERNATIVE_NAME = "551d11";
const SUBJECT_KEY_ID = "551d0e";
const AUTHORITY_KEY_ID = "551d23";

export function authority(pathLength: number): Buffer {
  const value = element(tag.sequence, TRUE, element(tag.integer, Buffer.from([pathLength])));
  return extension(BASIC_CONSTRAINTS, value, { critical: true });
}

export const noAuthority = extension(BASIC_CONSTRAINTS, element(tag.sequence), { critical: true });

/** The first byte of the content is how many bits at the end are unused. */
const keyUsage = (unused: number, bits: number) =>
  extension(KEY_USAGE, element(tag.bitString, Buffer.from([unused, bits])), { critical: true });
export const signsCertificates = keyUsage(1, 0b0000_0110);
export const signsMessages = keyUsage(7, 0b1000_0000);

const purposeIds = { server: objectId("2b06010505070301"), client: objectId("2b06010505070302") };
export type Purpose = keyof typeof purposeIds;

export function extendedKeyUsage(purposes: readonly Purpose[]): Buffer {
  return extension(EXTENDED_KEY_USAGE, element(tag.sequence, ...purposes.map((one) => purposeIds[one])));
}

/** Each is a host name, an IP address, or a URI. */
export type AlternativeName = { uri: string } | { host: string };

export function alternativeNames(names: readonly AlternativeName[]): Buffer {
  return extension(SUBJECT_ALTERNATIVE_NAME, element(tag.sequence, ...names.map(generalName)));
}

const DNS_NAME = primitive(2);
const URI = primitive(6);
const IP_ADDRESS = primitive(7);

function generalName(name: AlternativeName): Buffer {
  if ("uri" in name) return element(URI, Buffer.from(name.uri));
  if (isIPv4(name.host)) return element(IP_ADDRESS, Buffer.from(name.host.split(".").map(Number)));
  if (isIPv6(name.host)) return element(IP_ADDRESS, ipv6Bytes(name.host));
  return element(DNS_NAME, Buffer.from(name.host));
}

/** A certificate has no place for a zone. `URL` writes an IPv4 address at the end as two groups like the others. */
function ipv6Bytes(address: string): Buffer {
  const { hostname } = new URL(`http://[${address.replace(/%.*/, "")}]`);
  const [before = [], after = []] = hostname
    .slice(1, -1)
    .split("::")
    .map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array<string>(8 - before.length - after.length).fill("0");
  const groups = [...before, ...zeros, ...after];
  return Buffer.from(groups.map((group) => group.padStart(4, "0")).join(""), "hex");
}

export function subjectKeyId(publicKey: Buffer): Buffer {
  return extension(SUBJECT_KEY_ID, element(tag.octetString, keyId(publicKey)));
}

export function authorityKeyId(publicKeyOfIssuer: Buffer): Buffer {
  return extension(AUTHORITY_KEY_ID, element(tag.sequence, element(primitive(0), keyId(publicKeyOfIssuer))));
}

/** The usual one: a digest of the key itself, without what kind of key it is. */
function keyId(publicKey: Buffer): Buffer {
  const [whole] = read(publicKey, tag.sequence);
  const [, key] = read(whole.content, tag.sequence, tag.bitString);
  return hash("sha1", key.content.subarray(1), "buffer");
}
