// The enrollment token as a person pastes it: the secret, a dot, and the SHA-256 of the root
// certificate, by which a machine without any trust recognizes the right server.

import type { EnrollmentTokenKind } from "@holdfast/contracts/endpoints/enrollment";
import { secretPrefix } from "@holdfast/contracts/secrets";
import { UsageError } from "@holdfast/kit/settings";

export type EnrollmentToken = {
  /** The whole token, as it is sent. */
  text: string;
  /** SHA-256 of the root's DER, hex. */
  rootSha256: string;
};

const half = /^[A-Za-z0-9_-]{43}$/;
const prefixes: Record<EnrollmentTokenKind, string> = {
  pairing: secretPrefix.enrollment,
  bootstrap: secretPrefix.bootstrap,
};

/** Error messages never repeat any part of the token. */
export function parseEnrollmentToken(
  input: string,
  kinds: readonly EnrollmentTokenKind[] = ["pairing", "bootstrap"],
): EnrollmentToken {
  const wrong = (what: string) => explained(what, kinds);
  const text = input.trim();
  if (text === "") throw wrong("There is none");
  if (/\s/.test(text)) throw wrong("There is a space or a line break inside");
  const accepted = kinds.map((kind) => prefixes[kind]);
  const prefix = accepted.find((one) => text.startsWith(one));
  if (prefix === undefined) {
    const other = Object.values(secretPrefix).find((one) => text.startsWith(one));
    throw wrong(
      other ? `This is a secret of another kind (${other}…)` : `It does not begin with ${accepted.join(" or ")}`,
    );
  }
  const [secret = "", fingerprint, ...rest] = text.slice(prefix.length).split(".");
  if (fingerprint === undefined) throw wrong("The part behind the dot is missing");
  if (rest.length > 0) throw wrong("There is more than one dot in it");
  if (!half.test(secret)) throw wrong(`Before the dot stand ${secret.length} characters instead of 43`);
  if (!half.test(fingerprint)) throw wrong(`Behind the dot stand ${fingerprint.length} characters instead of 43`);
  return { text, rootSha256: Buffer.from(fingerprint, "base64url").toString("hex") };
}

function explained(what: string, kinds: readonly EnrollmentTokenKind[]): UsageError {
  const [name, command] = kinds.includes("pairing")
    ? ["enrollment token", "holdfast node token create"]
    : ["bootstrap token", "holdfast node token create --bootstrap --node <name>"];
  return new UsageError(
    `The ${name} cannot be used: ${what}. Copy the whole token, or make a new one: \`${command}\`.`,
  );
}
