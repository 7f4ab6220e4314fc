// The ways in which output is read: as it is, with percent-encoding or JSON escapes undone, as hex digits, as base64. Each view
// turns characters into symbols, one character at a time, and reports which part of the output every symbol came from.

/** A symbol, and the characters of the output that it came from: `from` up to, not including, `to`. */
export type Emit = (symbol: number, from: number, to: number) => void;

export type View = {
  add(unit: number, from: number, to: number): void;
  /** From where on characters have been read that are not yet a symbol; undefined: there are none. */
  waitsFrom(): number | undefined;
};

export type Sink = {
  symbol: Emit;
  /** No match goes on beyond this point. */
  interrupt(): void;
};

export const CARRIAGE_RETURN = 0x0d;
/** How many characters between two symbols are skipped: line breaks and indentation of what was wrapped. */
const MOST_SKIPPED = 16;

/** Counts what is skipped in a row: without a limit, a script could print line breaks that are held back without end. */
function skipper(sink: Sink) {
  let skipped = 0;
  return {
    skip() {
      skipped += 1;
      if (skipped > MOST_SKIPPED) sink.interrupt();
    },
    symbol(symbol: number, from: number, to: number) {
      skipped = 0;
      sink.symbol(symbol, from, to);
    },
  };
}

/** UTF-16 units. Carriage returns are skipped: terminals and Windows add them. */
export function plainView(sink: Sink): View {
  const out = skipper(sink);
  return {
    add(unit, from, to) {
      if (unit === CARRIAGE_RETURN) out.skip();
      else out.symbol(unit, from, to);
    },
    waitsFrom: () => undefined,
  };
}

/** An escape that is being read: its characters are passed on as they are if it turns out to be none. */
type Held = { unit: number; from: number; to: number };

/** `decode` of the characters that begin with `start`: undefined: none, `more`: perhaps, with further characters. */
function escapeView(
  start: number,
  decode: (text: string) => number | "more" | undefined,
  out: (unit: number, from: number, to: number) => void,
): View {
  let held: Held[] = [];
  const add = (unit: number, from: number, to: number): void => {
    if (held.length === 0 && unit !== start) {
      out(unit, from, to);
      return;
    }
    held.push({ unit, from, to });
    const decoded = decode(String.fromCharCode(...held.map((one) => one.unit)));
    if (decoded === "more") return;
    const [first, ...rest] = held;
    held = [];
    if (!first) return;
    if (decoded !== undefined) out(decoded, first.from, to);
    else {
      out(first.unit, first.from, first.to);
      // The others may begin an escape themselves.
      for (const one of rest) add(one.unit, one.from, one.to);
    }
  };
  return { add, waitsFrom: () => held[0]?.from };
}

const BACKSLASH = 0x5c;
const PERCENT = 0x25;
const short: Readonly<Record<string, number>> = {
  ...{ b: 0x08, f: 0x0c, n: 0x0a, r: CARRIAGE_RETURN, t: 0x09 },
  ...{ '"': 0x22, "\\": BACKSLASH, "/": 0x2f, "'": 0x27, e: 0x1b },
};

function decodeJson(text: string): number | "more" | undefined {
  if (text.length === 1) return "more";
  const kind = text.charAt(1);
  const digits = kind === "u" ? 4 : kind === "x" ? 2 : undefined;
  if (digits === undefined) return short[kind];
  if (!/^[0-9a-fA-F]*$/.test(text.slice(2))) return undefined;
  return text.length < 2 + digits ? "more" : Number.parseInt(text.slice(2), 16);
}

/** JSON escapes, and `\x41` of many languages, undone `levels` times: JSON is often a string within JSON. */
export function unescapedView(sink: Sink, levels: number): View {
  let inner = plainView(sink);
  for (let level = 0; level < levels; level += 1) {
    const { add, waitsFrom } = inner;
    const outer = escapeView(BACKSLASH, decodeJson, add);
    // What the outer level waits for comes after what the inner one waits for.
    inner = { add: outer.add, waitsFrom: () => waitsFrom() ?? outer.waitsFrom() };
  }
  return inner;
}

function decodePercent(text: string): number | "more" | undefined {
  if (!/^%[0-9a-fA-F]{0,2}$/.test(text)) return undefined;
  return text.length < 3 ? "more" : Number.parseInt(text.slice(1), 16);
}

/** UTF-8 bytes, with percent-encoding undone. `plusIsSpace`: as forms are encoded. */
export function percentView(sink: Sink, { plusIsSpace }: { plusIsSpace: boolean }): View {
  const out = skipper(sink);
  const byte = (value: number, from: number, to: number) => {
    if (value === CARRIAGE_RETURN) out.skip();
    else out.symbol(value, from, to);
  };
  const encode = (text: string, from: number, to: number) => {
    for (const value of Buffer.from(text)) byte(value, from, to);
  };
  let high: Held | undefined;
  const endPair = () => {
    if (high) encode("\ufffd", high.from, high.to);
    high = undefined;
  };
  const plain = (unit: number, from: number, to: number) => {
    if (high && unit >= 0xdc00 && unit <= 0xdfff) {
      const lead = high;
      high = undefined;
      return encode(String.fromCharCode(lead.unit, unit), lead.from, to);
    }
    endPair();
    if (unit >= 0xd800 && unit <= 0xdbff) high = { unit, from, to };
    else encode(plusIsSpace && unit === 0x2b ? " " : String.fromCharCode(unit), from, to);
  };
  const outer = escapeView(PERCENT, decodePercent, (unit, from, to) => {
    // Decoded, it came from three characters; otherwise from the one that it is.
    if (to - from === 1) return plain(unit, from, to);
    endPair();
    byte(unit, from, to);
  });
  return { add: outer.add, waitsFrom: () => high?.from ?? outer.waitsFrom() };
}

const isBlank = (unit: number) => unit === 0x20 || unit === 0x09 || unit === 0x0a || unit === CARRIAGE_RETURN;

/** A view of an alphabet: other characters interrupt it, those that separate are skipped. */
function alphabetView(
  sink: Sink,
  { symbolOf, separates }: { symbolOf(unit: number): number | undefined; separates(unit: number): boolean },
): View {
  const out = skipper(sink);
  return {
    add(unit, from, to) {
      const symbol = symbolOf(unit);
      if (symbol !== undefined) out.symbol(symbol, from, to);
      else if (separates(unit)) out.skip();
      else sink.interrupt();
    },
    waitsFrom: () => undefined,
  };
}

/** Half bytes, in either case, also with blanks, `:`, `-` or `,` between them. */
export function hexView(sink: Sink): View {
  return alphabetView(sink, {
    symbolOf: (unit) => {
      if (unit >= 0x30 && unit <= 0x39) return unit - 0x30;
      const letter = unit | 0x20;
      return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : undefined;
    },
    separates: (unit) => isBlank(unit) || unit === 0x3a || unit === 0x2d || unit === 0x2c,
  });
}

/** Six bits each, in both alphabets, also wrapped into lines. */
export function base64View(sink: Sink): View {
  return alphabetView(sink, { symbolOf: sixBitsOf, separates: isBlank });
}

function sixBitsOf(unit: number): number | undefined {
  if (unit >= 0x41 && unit <= 0x5a) return unit - 0x41;
  if (unit >= 0x61 && unit <= 0x7a) return unit - 0x61 + 26;
  if (unit >= 0x30 && unit <= 0x39) return unit - 0x30 + 52;
  if (unit === 0x2b || unit === 0x2d) return 62;
  return unit === 0x2f || unit === 0x5f ? 63 : undefined;
}
