// The enrollment token as a person pastes it: the secret, a dot, and the SHA-256 of the root
// certificate, which is how a machine that trusts nobody yet knows the right server.

import { secretPrefix } from "@holdfast/contracts/secrets";
import { UsageError } from "@holdfast/kit/settings";

export type EnrollmentToken = {
  /** The whole of it, as it is sent. */
  text: string;
  /** SHA-256 of the root's DER, hex. */
  rootSha256: string;
};

const half = /^[A-Za-z0-9_-]{43}$/;

/** What is wrong is said without repeating any part of the token. */
export function parseEnrollmentToken(input: string): EnrollmentToken {
  const text = input.trim();
  if (text === "") throw wrong("There is none");
  if (/\s/.test(text)) throw wrong("There is a space or a line break inside");
  if (!text.startsWith(secretPrefix.enrollment)) {
    const other = Object.entries(secretPrefix).find(([, prefix]) => text.startsWith(prefix));
    throw wrong(
      other
        ? `This is a secret of another kind (${other[1]}…)`
        : `It does not begin with ${secretPrefix.enrollment}`,
    );
  }
  const [secret = "", fingerprint, ...rest] = text.slice(secretPrefix.enrollment.length).split(".");
  if (fingerprint === undefined) throw wrong("The part behind the dot is missing");
  if (rest.length > 0) throw wrong("There is more than one dot in it");
  if (!half.test(secret)) throw wrong(`Before the dot stand ${secret.length} characters instead of 43`);
  if (!half.test(fingerprint)) throw wrong(`Behind the dot stand ${fingerprint.length} characters instead of 43`);
  return { text, rootSha256: Buffer.from(fingerprint, "base64url").toString("hex") };
}

function wrong(what: string): UsageError {
  return new UsageError(
    `The enrollment token cannot be used: ${what}. Copy the whole token, or make a new one: ` +
      "`holdfast node token create`.",
  );
}
