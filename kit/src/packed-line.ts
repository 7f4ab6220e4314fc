// Text as one line that can be pasted: compressed, base64url, in two parts behind a prefix.

import { deflateRawSync, inflateRawSync } from "node:zlib";

/** More would be no line that a person pastes. */
const MOST_BYTES = 1024 * 1024;

/** `head`: base64url, readable without unpacking the rest. */
export function packLine(prefix: string, head: string, text: string): string {
  return `${prefix}${head}.${deflateRawSync(text, { level: 9 }).toString("base64url")}`;
}

/** White space that a terminal or a mail put into it does not matter. Undefined: this is not such a line, or a part is missing. */
export function unpackLine(prefix: string, line: string): { head: string; text: string } | undefined {
  const compact = line.replace(/\s+/g, "");
  if (!compact.startsWith(prefix)) return undefined;
  const [head = "", packed = "", ...rest] = compact.slice(prefix.length).split(".");
  if (head === "" || packed === "" || rest.length > 0) return undefined;
  try {
    const text = inflateRawSync(Buffer.from(packed, "base64url"), { maxOutputLength: MOST_BYTES }).toString();
    return { head, text };
  } catch {
    return undefined;
  }
}
