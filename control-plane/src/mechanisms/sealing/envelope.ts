// Envelope encryption with AES-256-GCM. A value is sealed with a key of its own; that key is
// wrapped under the key-encryption key (KEK). The name is bound into both as associated data, so a
// box cannot be moved to another name unnoticed. Pure functions of bytes.

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const FORM = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export type Envelope = { wrappedKey: Buffer; sealedValue: Buffer };

/** A box: form byte, nonce, ciphertext, tag. */
export function sealBox(key: Buffer, context: string, plain: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(Buffer.from(context));
  return Buffer.concat([Buffer.of(FORM), nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Throws when the key, the context or a single bit is wrong. */
export function openBox(key: Buffer, context: string, box: Buffer): Buffer {
  if (box[0] !== FORM || box.length < 1 + NONCE_BYTES + TAG_BYTES) throw new Error("not a sealed box");
  const nonce = box.subarray(1, 1 + NONCE_BYTES);
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(box.subarray(box.length - TAG_BYTES));
  return Buffer.concat([decipher.update(box.subarray(1 + NONCE_BYTES, box.length - TAG_BYTES)), decipher.final()]);
}

export function sealEnvelope(kek: Buffer, name: string, value: Buffer): Envelope {
  const key = randomBytes(32);
  return { wrappedKey: sealBox(kek, `key:${name}`, key), sealedValue: sealBox(key, `value:${name}`, value) };
}

export function openEnvelope(kek: Buffer, name: string, envelope: Envelope): Buffer {
  const key = openBox(kek, `key:${name}`, envelope.wrappedKey);
  return openBox(key, `value:${name}`, envelope.sealedValue);
}

/** Only the small wrapped key changes; the value is not opened. */
export function rewrapKey(keks: { from: Buffer; to: Buffer }, name: string, wrappedKey: Buffer): Buffer {
  return sealBox(keks.to, `key:${name}`, openBox(keks.from, `key:${name}`, wrappedKey));
}
