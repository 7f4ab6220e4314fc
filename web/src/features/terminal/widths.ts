// How many cells a character takes, as the C library on a present-day host counts. xterm.js counts as
// Unicode 6 did, before emoji were wide: whatever follows one on a line would then stand a cell too early.

import type { IUnicodeVersionProvider } from "@xterm/xterm";

type Width = 0 | 1 | 2;

/** First and last of what East Asian scripts set wide; emoji are known to the browser. */
const wide: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2329, 0x232a],
  [0x2e80, 0x303e],
  [0x3041, 0x4dbf],
  [0x4e00, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18dff],
  [0x1aff0, 0x1b2ff],
  [0x1f200, 0x1f265],
  [0x20000, 0x3fffd],
];

const emoji = /^\p{Emoji_Presentation}$/u;
const withoutWidth = /^[\p{Mn}\p{Me}\p{Cf}\u{1160}-\u{11ff}]$/u;
/** Alone they are letters in frames, not half of a flag. */
const regional = (code: number) => code >= 0x1f1e6 && code <= 0x1f1ff;

export function widthOf(code: number): Width {
  if (code < 32 || (code >= 0x7f && code < 0xa0)) return 0;
  if (code < 0x300) return 1;
  const text = String.fromCodePoint(code);
  if (withoutWidth.test(text)) return 0;
  if (wide.some(([first, last]) => code >= first && code <= last)) return 2;
  return emoji.test(text) && !regional(code) ? 2 : 1;
}

/** Looked up for every character of output: each is worked out once. */
const known = new Map<number, Width>();

function width(code: number): Width {
  if (code >= 32 && code < 0x7f) return 1;
  let found = known.get(code);
  if (found === undefined) {
    found = widthOf(code);
    known.set(code, found);
  }
  return found;
}

/** xterm.js keeps per character: bit 0, whether it joins the one before; bits 1 and 2, the width. */
export const widths: IUnicodeVersionProvider = {
  version: "holdfast",
  wcwidth: width,
  charProperties(code, preceding) {
    const own = width(code);
    const before = (preceding >> 1) & 3;
    const joins = own === 0 && preceding !== 0 && before !== 0;
    return ((joins ? Math.max(own, before) : own) << 1) | (joins ? 1 : 0);
  },
};
