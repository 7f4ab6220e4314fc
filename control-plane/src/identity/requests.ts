// Reads certificate requests (PKCS#10) of nodes and services. Only the key is taken from a request: the server decides
// whom the certificate is for, and how long it is valid. A name is ignored, but must be one; whoever asks for more, such as
// extensions, is refused.

import { createPublicKey, hash, type KeyObject, verify } from "node:crypto";
import { ApiError } from "@holdfast/contracts/errors";
import { constructed, tag } from "@holdfast/kit/der";
import { type Element, MalformedDer, read, readAll } from "./der-reader.ts";

export type KeyRequest = {
  /** SubjectPublicKeyInfo, DER. A key has one such form, so its digest identifies the key. */
  publicKey: Buffer;
  keySha256: Buffer;
};

/** Throws `csr_invalid` unless it is a request for a P-256 key, signed with that key by ECDSA with SHA-256. */
export function readKeyRequest(pem: string): KeyRequest {
  const { signedPart, publicKey, attributes, algorithm, signature } = parse(derOf(pem));
  if (attributes.length > 0)
    throw refused("the request has attributes; a certificate is issued for its key alone");
  const key = p256Key(publicKey);
  if (!key) throw refused("the key is not a P-256 key");
  if (!algorithm.equals(ECDSA_WITH_SHA256)) throw refused("the request is not signed by ECDSA with SHA-256");
  if (!isSignedWith(key, signedPart, signature)) throw refused("the request is not signed with its own key");
  return { publicKey, keySha256: hash("sha256", publicKey, "buffer") };
}

const pemBlock = /^\s*-----BEGIN CERTIFICATE REQUEST-----([\s\w+/=]+)-----END CERTIFICATE REQUEST-----\s*$/;

function derOf(pem: string): Buffer {
  const text = pemBlock.exec(pem)?.[1]?.replace(/\s/g, "") ?? "";
  const der = Buffer.from(text, "base64");
  // Node.js skips what is not base64.
  if (text === "" || der.toString("base64") !== text) {
    throw refused("not a PEM block of the type CERTIFICATE REQUEST");
  }
  return der;
}

type Parsed = Record<"signedPart" | "publicKey" | "attributes" | "algorithm" | "signature", Buffer>;

function parse(der: Buffer): Parsed {
  try {
    const [request] = read(der, tag.sequence);
    const [info, algorithm, signature] = read(request.content, tag.sequence, tag.sequence, tag.bitString);
    const fields = [tag.integer, tag.sequence, tag.sequence, constructed(0)] as const;
    const [version, subject, publicKey, attributes] = read(info.content, ...fields);
    if (!version.content.equals(VERSION_1)) throw new MalformedDer("an unknown version");
    checkName(subject);
    if (signature.content[0] !== 0) throw new MalformedDer("a signature of incomplete bytes");
    return {
      signedPart: info.bytes,
      publicKey: publicKey.bytes,
      attributes: attributes.content,
      algorithm: algorithm.bytes,
      signature: signature.content.subarray(1),
    };
  } catch (error) {
    if (error instanceof MalformedDer) throw refused("not a PKCS#10 request");
    throw error;
  }
}

/** The number of version 1 is 0. */
const VERSION_1 = Buffer.from([0]);
const ECDSA_WITH_SHA256 = Buffer.from("300a06082a8648ce3d040302", "hex");
/** Before the two coordinates, in a SubjectPublicKeyInfo with the curve's name and an uncompressed point. */
const P256_HEADER = Buffer.from("3059301306072a8648ce3d020106082a8648ce3d03010703420004", "hex");
const P256_BYTES = P256_HEADER.length + 64;

const texts: ReadonlySet<number> = new Set([tag.utf8String, tag.printableString, tag.ia5String]);
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Undefined: another kind of key, another form of it, or a point that is not on the curve, which OpenSSL checks. */
function p256Key(spki: Buffer): KeyObject | undefined {
  if (spki.length !== P256_BYTES || !spki.subarray(0, P256_HEADER.length).equals(P256_HEADER)) return undefined;
  try {
    return createPublicKey({ key: spki, format: "der", type: "spki" });
  } catch {
    return undefined;
  }
}

function isSignedWith(key: KeyObject, content: Buffer, signature: Buffer): boolean {
  try {
    return verify("sha256", content, key, signature);
  } catch {
    return false;
  }
}

function checkName(name: Element): void {
  for (const part of readAll(name.content, tag.set)) {
    const attributes = readAll(part.content, tag.sequence);
    if (attributes.length === 0) throw new MalformedDer("an empty part of a name");
    for (const attribute of attributes) checkNamePart(attribute);
  }
}

function checkNamePart({ content }: Element): void {
  const [type, value, ...more] = readAll(content);
  if (!type || !value || more.length > 0 || !texts.has(value.tag)) throw new MalformedDer("not a part of a name");
  checkObjectId(type);
  try {
    utf8.decode(value.content);
  } catch {
    throw new MalformedDer("a name that is not text");
  }
}

/** Numbers of seven bits a byte: the last byte of each has its first bit clear, and no number begins with zeros. */
function checkObjectId({ tag: given, content }: Element): void {
  const isNumbers = content.every((byte, index) => byte !== 0x80 || (content[index - 1] ?? 0) >= 0x80);
  const isComplete = (content.at(-1) ?? 0x80) < 0x80;
  if (given !== tag.objectId || !isNumbers || !isComplete) throw new MalformedDer("not an object identifier");
}

function refused(problem: string): ApiError {
  return new ApiError("csr_invalid", { details: { fields: [{ field: "body.csr", problem }] } });
}
