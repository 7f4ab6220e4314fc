// A PKCS#10 certificate request for a P-256 key, written as DER by hand: an X.509 library would cost
// an agent or a gateway more memory than these fifty lines. The server reads only the key out of it and
// decides every name itself.

import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { bitString, constructed, element, pem, tag } from "./der.ts";

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
  const commonName = element(tag.sequence, oid.commonName, element(tag.utf8String, Buffer.from(name)));
  const subject = element(tag.sequence, element(tag.set, commonName));
  const publicKey = createPublicKey(key).export({ type: "spki", format: "der" });
  const version = element(tag.integer, Buffer.from([0]));
  const noAttributes = element(constructed(0));
  const content = element(tag.sequence, version, subject, publicKey, noAttributes);
  const signature = sign("sha256", content, key);
  const algorithm = element(tag.sequence, oid.ecdsaWithSha256);
  return pem("CERTIFICATE REQUEST", element(tag.sequence, content, algorithm, bitString(signature)));
}
