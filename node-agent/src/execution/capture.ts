// What a result keeps of a stream of output: its beginning, up to a number of characters and of bytes as JSON. The second is
// what the journal has room for; output that is text never reaches it.

import { MOST_OUTPUT_CHARACTERS } from "@holdfast/contracts/execution/limits";

/** Three bytes for each character, as in Chinese, and some escapes. */
export const MOST_STREAM_BYTES = 200 * 1024;

export type Capture = {
  /** Returns what is kept of it. */
  add(text: string): string;
  text(): string;
  truncated(): boolean;
};

export function createCapture(most = { characters: MOST_OUTPUT_CHARACTERS, bytes: MOST_STREAM_BYTES }): Capture {
  const parts: string[] = [];
  let characters = 0;
  let bytes = 0;
  let truncated = false;
  return {
    add(text) {
      if (truncated || text === "") return "";
      // As it will be stored: NUL is removed, and half a character replaced.
      const clean = text.replaceAll("\0", "").toWellFormed();
      let kept = wholeCharacters(clean, most.characters - characters);
      while (kept !== "" && bytes + jsonBytes(kept) > most.bytes) kept = wholeCharacters(kept, kept.length >> 1);
      truncated = kept.length < clean.length;
      if (kept === "") return "";
      parts.push(kept);
      characters += kept.length;
      bytes += jsonBytes(kept);
      return kept;
    },
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
