// What a result keeps of a stream of output: its beginning, up to a number of characters and of bytes as JSON. The second is
// what the journal has room for; output that is text never reaches it. Secrets are removed first: a cut through one would
// leave its beginning, which nothing recognizes any more.

import { MOST_OUTPUT_CHARACTERS } from "@holdfast/contracts/execution/limits";
import type { RedactedStream } from "./redaction/redactor.ts";

/** Three bytes for each character, as in Chinese, and some escapes. */
export const MOST_STREAM_BYTES = 200 * 1024;

export type Capture = {
  /** Returns what is kept of the output so far, and was not returned before. */
  add(text: string): string;
  /** The output has ended. Returns the rest that is kept of it. */
  end(): string;
  text(): string;
  truncated(): boolean;
};

export function createCapture(
  redacted: RedactedStream,
  most = { characters: MOST_OUTPUT_CHARACTERS, bytes: MOST_STREAM_BYTES },
): Capture {
  const parts: string[] = [];
  let characters = 0;
  let bytes = 0;
  let truncated = false;
  /** As it will be stored: NUL is removed, and half a character replaced. */
  const cleanOf = (text: string) => text.replaceAll("\0", "").toWellFormed();
  const keep = (clean: string) => {
    let kept = wholeCharacters(clean, most.characters - characters);
    while (kept !== "" && bytes + jsonBytes(kept) > most.bytes) kept = wholeCharacters(kept, kept.length >> 1);
    truncated = kept.length < clean.length;
    if (kept === "") return "";
    parts.push(kept);
    characters += kept.length;
    bytes += jsonBytes(kept);
    return kept;
  };
  return {
    add: (text) => (truncated || text === "" ? "" : keep(redacted.add(cleanOf(text)))),
    end: () => (truncated ? "" : keep(redacted.end())),
    text: () => parts.join(""),
    truncated: () => truncated,
  };
}

/** Not more than `most` units, and no half of a pair. */
function wholeCharacters(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most);
}

/** Without its quotes. */
function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2;
}
