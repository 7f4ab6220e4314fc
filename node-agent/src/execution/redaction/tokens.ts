// Secrets that are recognized by their form, without being known: tokens of Holdfast by their prefix, recovery bundles, private keys in
// PEM. The forms are those of `redact` in kit; passwords in URLs and headers are left to that, because in the output of a script
// they cannot be distinguished from ordinary words.

/** Reads character by character, and covers what is to be hidden. */
export type Scanner = {
  add(unit: number, at: number): void;
  /** From where on characters may turn out to be secret. */
  waitsFrom(): number | undefined;
};

export type Cover = (from: number, to: number) => void;

const LEAST_TOKEN = 16;
const inToken = /[A-Za-z0-9_-]/;

/** The prefix stays visible: it says what the token was for. */
export const scanTokens = (cover: Cover): Scanner =>
  scanRuns(cover, {
    head: createHead({ first: "h", part: /^hf?$|^hf[a-z]_?$/, whole: /^hf[a-z]_$/, most: 4 }),
    least: LEAST_TOKEN,
  });

export const scanBundles = (cover: Cover): Scanner =>
  scanRuns(cover, {
    head: createHead({
      ...{ first: "h", whole: /^hfbundle\d\.$/, most: 10 },
      part: /^h(f(b(u(n(d(l(e(\d\.?)?)?)?)?)?)?)?)?$/,
    }),
    least: 1,
  });

type Head = {
  /** Whether the text up to here ends with the whole head. */
  add(text: string, at: number): boolean;
  from(): number | undefined;
};

/** What could become a head, and ends with the character that was read last. */
function createHead(of: { first: string; part: RegExp; whole: RegExp; most: number }): Head {
  let head = "";
  let end = 0;
  return {
    add(text, at) {
      if (head === "" && text !== of.first) return false;
      head += text;
      while (head !== "" && (head.length > of.most || !of.part.test(head))) head = head.slice(1);
      end = at + 1;
      if (!of.whole.test(head)) return false;
      head = "";
      return true;
    },
    from: () => (head === "" ? undefined : end - head.length),
  };
}

/** A head, and a run of characters behind it, which is hidden if it is long enough; a further run may follow behind a dot. */
function scanRuns(cover: Cover, { head, least }: { head: Head; least: number }): Scanner {
  let run: { from: number; length: number } | undefined;
  return {
    add(unit, at) {
      const text = String.fromCharCode(unit);
      if (run && inToken.test(text)) {
        run.length += 1;
        if (run.length === least) cover(run.from, at + 1);
        else if (run.length > least) cover(at, at + 1);
      } else if (run && text === "." && run.length >= least) run = { from: at, length: 0 };
      else {
        run = undefined;
        if (head.add(text, at)) run = { from: at + 1, length: 0 };
      }
    },
    waitsFrom: () => (run ? (run.length < least ? run.from : undefined) : head.from()),
  };
}

const MOST_KEY = 16_384;
const MOST_LINE = 80;
// Line breaks are escaped inside JSON strings.
const inKey = /[A-Za-z0-9+/=:,\s\\-]/;
const keyEnd = /-----END [A-Z0-9 ]*PRIVATE KEY-----$/;

/** A key that was cut off is hidden as far as its characters could belong to one. */
export function scanPrivateKeys(cover: Cover): Scanner {
  const head = createHead({
    ...{ first: "-", whole: /^-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----$/, most: MOST_LINE },
    part: /^-{1,5}$|^-----B(E(G(I(N( [A-Z0-9 ]*-{0,5})?)?)?)?)?$/,
  });
  let key: { tail: string; length: number } | undefined;
  return {
    add(unit, at) {
      const text = String.fromCharCode(unit);
      if (key && key.length < MOST_KEY && inKey.test(text)) {
        key = { tail: (key.tail + text).slice(-MOST_LINE), length: key.length + 1 };
        cover(at, at + 1);
        if (text === "-" && keyEnd.test(key.tail)) key = undefined;
        return;
      }
      key = undefined;
      const from = head.from() ?? at;
      if (!head.add(text, at)) return;
      cover(from, at + 1);
      key = { tail: "", length: 0 };
    },
    waitsFrom: () => (key ? undefined : head.from()),
  };
}
