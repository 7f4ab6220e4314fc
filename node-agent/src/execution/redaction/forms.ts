// A secret in the symbols of each view: what is looked for there.

import type { Pattern } from "./matcher.ts";
import { CARRIAGE_RETURN } from "./views.ts";

/**
 * A shorter one is not redacted: it would hide parts of words everywhere, and what is hidden would show what it is. The marker is not
 * longer, so that redaction never makes output larger than what was reserved for it.
 */
export const SHORTEST_REDACTED = 8;

export type Forms = { units: Pattern[]; bytes: Pattern[]; nibbles: Pattern[]; sextets: Pattern[] };

/** The values themselves, and each line of them that is long enough: output is often printed line by line. */
export function formsOf(secrets: readonly string[]): Forms {
  const texts = new Set<string>();
  for (const secret of secrets) {
    // As it is stored and printed: half a character cannot be.
    const value = secret.toWellFormed();
    for (const text of [value, ...value.split(/[\r\n]+/)]) {
      for (const one of [text, text.trim()]) if (one.length >= SHORTEST_REDACTED) texts.add(one);
    }
  }
  const forms: Forms = { units: [], bytes: [], nibbles: [], sextets: [] };
  for (const text of texts) {
    const bytes = [...Buffer.from(text)];
    forms.units.push(exact(Array.from({ length: text.length }, (_, at) => text.charCodeAt(at)).filter(isSymbol)));
    forms.bytes.push(exact(bytes.filter(isSymbol)));
    forms.nibbles.push(exact(bytes.flatMap((byte) => [byte >> 4, byte & 15])));
    for (const offset of [0, 1, 2]) forms.sextets.push(sextetsOf(bytes, offset));
  }
  return forms;
}

const isSymbol = (unit: number) => unit !== CARRIAGE_RETURN;
const exact = (symbols: number[]): Pattern => ({ symbols, after: false });

/**
 * Of base64 in which `offset` bytes, modulo three, come before the secret: the characters that hold bits of the secret only. The one
 * before them holds up to four bits of its first byte, and is shown: to cover it, every last character would have to be held back.
 */
function sextetsOf(bytes: readonly number[], offset: number): Pattern {
  const first = offset * 8;
  const end = first + bytes.length * 8;
  const bit = (at: number) => ((bytes[(at - first) >> 3] ?? 0) >> (7 - ((at - first) & 7))) & 1;
  const symbols: number[] = [];
  const begin = Math.ceil(first / 6) * 6;
  for (let at = begin; at + 6 <= end; at += 6) {
    symbols.push([0, 1, 2, 3, 4, 5].reduce((value, index) => (value << 1) | bit(at + index), 0));
  }
  return { symbols, after: (end - begin) % 6 !== 0 };
}
