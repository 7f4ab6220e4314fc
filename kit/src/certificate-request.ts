// A PKCS#10 certificate request for a P-256 key, written as DER by hand: an X.509 library would cost
// an agent or a gateway more memory than these fifty lines. The server reads only the key out of it and
// decides every name itself.

import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

const tag = { integer: 0x02, bitString: 0x03, utf8String: 0x0c, sequence: 0x30, set: 0x31, attributes: 0xa0 };
/** Whole encodings, with their tag and length. */
const oid = {
  commonName: Buffer.from("0603550403", "hex"),
  ecdsaWithSha256: Buffer.from("06082a8648ce3d040302", "hex"),
};

export function newPrivateKey(): KeyObject {
  return generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
}

export function privateKeyPem(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }) as string;
}

/** PEM. The name is for people who look at the request; it grants nothing. */
export function certificateRequest(key: KeyObject, name: string): string {
  const subject = der(
    tag.sequence,
    der(tag.set, der(tag.sequence, oid.commonName, der(tag.utf8String, Buffer.from(name)))),
  );
  const publicKey = createPublicKey(key).export({ type: "spki", format: "der" });
  const version = der(tag.integer, Buffer.from([0]));
  const content = der(tag.sequence, version, subject, publicKey, der(tag.attributes));
  const signature = sign("sha256", content, key);
  const algorithm = der(tag.sequence, oid.ecdsaWithSha256);
  // The leading zero: no bits of the last byte are unused.
  const request = der(tag.sequence, content, algorithm, der(tag.bitString, Buffer.from([0]), signature));
  return pem("CERTIFICATE REQUEST", request);
}

function der(tagByte: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tagByte]), lengthOf(content.length), content]);
}

/** One byte up to 127; beyond, the number of bytes and then the bytes. */
function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  if (length < 0x100) return Buffer.from([0x81, length]);
  return Buffer.from([0x82, length >> 8, length & 0xff]);
}

function pem(label: string, content: Buffer): string {
  const lines = content.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
