// Seals a value for whoever has the private key: X25519 with a key of its own for each value, HKDF, AES-256-GCM. The id of the request is
// bound to it, so that an answer cannot be moved to another one. Pure functions of bytes.

import { createPublicKey, diffieHellman, generateKeyPairSync, hkdfSync, type KeyObject } from "node:crypto";
import { openBox, sealBox } from "../../mechanisms/sealing/envelope.ts";

const PUBLIC_KEY_BYTES = 44;

export const newRecipient = () => generateKeyPairSync("x25519");

export const publicBytes = (key: KeyObject): Buffer => key.export({ type: "spki", format: "der" });

const contextOf = (id: string) => `step secret:${id}`;

export function sealFor(recipient: Buffer, id: string, value: string): Buffer {
  const { publicKey, privateKey } = generateKeyPairSync("x25519");
  const key = sharedKey(privateKey, fromBytes(recipient), id);
  return Buffer.concat([publicBytes(publicKey), sealBox(key, contextOf(id), Buffer.from(value))]);
}

export function openWith(privateKey: KeyObject, id: string, sealed: Buffer): string {
  const key = sharedKey(privateKey, fromBytes(sealed.subarray(0, PUBLIC_KEY_BYTES)), id);
  return openBox(key, contextOf(id), sealed.subarray(PUBLIC_KEY_BYTES)).toString();
}

const fromBytes = (bytes: Buffer) => createPublicKey({ key: bytes, type: "spki", format: "der" });

function sharedKey(privateKey: KeyObject, publicKey: KeyObject, id: string): Buffer {
  return Buffer.from(hkdfSync("sha256", diffieHellman({ privateKey, publicKey }), "", contextOf(id), 32));
}
