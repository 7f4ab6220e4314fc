// Creates and verifies bearer secrets. They have 256 random bits, so a plain SHA-256 at rest is enough:
// they cannot be guessed, and a lookup by hash takes the same time for every wrong one.

import { hash, randomBytes } from "node:crypto";
import { type SecretKind, secretPrefix } from "@holdfast/contracts/secrets";

export function makeSecret(kind: SecretKind): { secret: string; hash: Buffer } {
  const secret = secretPrefix[kind] + randomBytes(32).toString("base64url");
  return { secret, hash: hashSecret(secret) };
}

export function hashSecret(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}

export function isSecretOf(kind: SecretKind, text: string): boolean {
  return text.startsWith(secretPrefix[kind]);
}
