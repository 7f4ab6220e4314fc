// A signed statement: what kind it is, a version that only rises, and its content, signed as one canonical JSON. Who
// may sign which kind, and which version is new, is decided where the statement is read.

import { canonicalJson } from "./canonical-json.ts";
import { type SigningKey, signDetached, type VerifierKeyring, verifyDetached } from "./detached-jws.ts";

export type Statement = { kind: string; version: number; content: unknown };
/** Several signatures, so that readers that trust different keys can read the same statement. */
export type Signed<S extends Statement> = S & { signatures: string[] };

export function signStatement<S extends Statement>(keys: readonly SigningKey[], statement: S): Signed<S> {
  const payload = payloadOf(statement);
  return { ...statement, signatures: keys.map((key) => signDetached(key, payload)) };
}

/** True when one of these keys has signed it. False for whatever does not have the form of a statement. */
export function isSignedBy(keys: VerifierKeyring, signed: Signed<Statement>): boolean {
  try {
    const payload = payloadOf(signed);
    return signed.signatures.some((one) => verifyDetached(keys, payload, one) === "valid");
  } catch {
    return false;
  }
}

function payloadOf({ kind, version, content }: Statement): string {
  return canonicalJson({ kind, version, content });
}
