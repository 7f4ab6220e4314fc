// Removes secrets from what goes into a bundle. Log lines and diagnostics are redacted where they are written; this is the last
// look before they leave the installation, and it rather removes too much: by the names of fields, by forms, and by the values
// that this process knows.

import { redact, withoutValues } from "@holdfast/kit/redact";

const secretField =
  /(^|[_-])(passwords?|passwd|passphrase|secrets?|tokens?|cookies?|authorization|kek|credentials?|private[_-]?key|api[_-]?key)$/i;

/** Such as `password=…` in a command, or `Cookie: …` in a header. Short words after a colon are prose. */
const assigned =
  /\b((?:[a-z]+[_-])*(?:password|passwd|passphrase|secret|token|kek|api[_-]?key))(=|:\s*(?=[^\s"'&,;]{12}))["']?[^\s"'&,;\\]+/gi;
const cookieHeader = /\b((?:set-)?cookie)(:\s*|=)[^\n"\\]+/gi;
/** 32 bytes in base64, such as a key. */
const key256 = /(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/]{43}=(?![A-Za-z0-9+/=])/g;

export type Redact = <T>(value: T) => T;

/** `values`: secrets of this process. */
export function redactionOf(values: readonly string[]): Redact {
  const withoutOwn = withoutValues(values);
  const inText = (text: string) =>
    withoutOwn(redact(text))
      .replace(cookieHeader, "$1$2[redacted]")
      .replace(assigned, "$1$2[redacted]")
      .replace(key256, "[redacted]");
  const within = (value: unknown): unknown => {
    if (typeof value === "string") return inText(value);
    if (Array.isArray(value)) return value.map(within);
    if (typeof value !== "object" || value === null || value instanceof Date) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [inText(name), isHidden(name, one) ? "[redacted]" : within(one)]),
    );
  };
  return (value) => within(value) as typeof value;
}

/** A number or a boolean about a token, such as when it ends, is not the token. */
function isHidden(name: string, value: unknown): boolean {
  return secretField.test(name) && (typeof value === "string" || Array.isArray(value)) && value !== "[set]";
}
