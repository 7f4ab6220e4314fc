import { redact } from "@holdfast/kit/redact";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SHORTEST_REDACTED } from "./forms.ts";
import { createRedaction, MARKER, type Redaction } from "./redactor.ts";

const SECRET = 'p4ss/w+rd é "q\\\n%41&Ω-tail';
const TOKEN = `hfx_${"aB3-_".repeat(6)}`;

function inPieces(redaction: Redaction, pieces: readonly string[]): string {
  const stream = redaction.stream();
  return pieces.map((piece) => stream.add(piece)).join("") + stream.end();
}

const everyByte = (text: string, form: (byte: number) => string) => [...Buffer.from(text)].map(form).join("");
const hex2 = (byte: number) => byte.toString(16).padStart(2, "0");
/** As `base64` prints it. */
const wrapped = (text: string, columns = 8) => text.replace(new RegExp(`.{${columns}}`, "g"), "$&\n");

const forms: Record<string, (secret: string) => string> = {
  "as it is": (secret) => secret,
  "with carriage returns": (secret) => secret.replaceAll("\n", "\r\n"),
  base64: (secret) => Buffer.from(secret).toString("base64"),
  "base64 in lines": (secret) => wrapped(Buffer.from(secret).toString("base64")),
  base64url: (secret) => Buffer.from(secret).toString("base64url"),
  hex: (secret) => Buffer.from(secret).toString("hex"),
  "HEX, separated": (secret) => everyByte(secret, (byte) => `${hex2(byte).toUpperCase()}:`),
  "hex in lines": (secret) =>
    wrapped(
      everyByte(secret, (byte) => ` ${hex2(byte)}`),
      9,
    ),
  encodeURIComponent,
  encodeURI,
  "every byte percent-encoded, lower case": (secret) => everyByte(secret, (byte) => `%${hex2(byte)}`),
  "as a form": (secret) => new URLSearchParams({ secret }).toString().slice("secret=".length),
  JSON: (secret) => JSON.stringify(secret).slice(1, -1),
  "JSON within JSON": (secret) => JSON.stringify(JSON.stringify(secret)),
  "JSON in ASCII": (secret) =>
    JSON.stringify(secret)
      .slice(1, -1)
      .replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  "JSON with escaped slashes": (secret) => JSON.stringify(secret).slice(1, -1).replaceAll("/", "\\/"),
  "escapes of a shell": (secret) => secret.replace(/[ -~]/g, (unit) => `\\x${hex2(unit.charCodeAt(0))}`),
};

/** Long enough to recognize it; base64 keeps the character beside a secret that starts within a group. */
function partsOf(form: string, length = 6): string[] {
  return Array.from({ length: form.length - length + 1 }, (_, at) => form.slice(at, at + length)).filter(
    (part) => !/\s/.test(part),
  );
}

describe("a known secret", () => {
  const redaction = createRedaction([SECRET]);

  it.for(Object.entries(forms))("AGENT-10 is hidden in output: %s", ([, form]) => {
    const hidden = redaction.text(`before [${form(SECRET)}] after`);
    expect(hidden).toMatch(/^before \["?.{0,2}\[secret\][^a-z]{0,3}\] after$/);
    for (const part of partsOf(form(SECRET))) expect(hidden).not.toContain(part);
  });

  it.for([0, 1, 2, 3, 4, 5])("AGENT-10 is hidden in base64 of a larger text, %d bytes before it", (before) => {
    for (const after of [0, 1, 2, 3]) {
      for (const alphabet of ["base64", "base64url"] as const) {
        const encoded = Buffer.from(`${"x".repeat(before)}${SECRET}${"y".repeat(after)}`).toString(alphabet);
        const hidden = redaction.text(encoded);
        const [prefix = "", rest = ""] = hidden.split(MARKER);
        expect(hidden).toContain(MARKER);
        expect(prefix.length, "whole characters before it, and the one that it begins in").toBeLessThanOrEqual(
          Math.ceil((before * 8) / 6),
        );
        expect(rest.replaceAll("=", "").length).toBeLessThanOrEqual(Math.ceil((after * 8) / 6));
      }
    }
  });

  it("AGENT-10 is hidden whatever stands around it, also itself", () => {
    expect(redaction.text(SECRET + SECRET)).toBe(MARKER);
    expect(redaction.text(`a${SECRET}b${SECRET}c`)).toBe(`a${MARKER}b${MARKER}c`);
    const overlapping = createRedaction(["abcabcabcabc"]);
    expect(overlapping.text("xabcabcabcabcabcabcx")).toBe(`x${MARKER}x`);
    expect(createRedaction(["overlaps-one", "one-and-two"]).text("[overlaps-one-and-two]")).toBe(`[${MARKER}]`);
    expect(createRedaction(["prefix-x", "prefix-x-longer"]).text("prefix-x-longe prefix-x-longer")).toBe(
      `${MARKER}-longe ${MARKER}`,
    );
  });

  it("AGENT-10 of several lines is hidden line by line, too, except lines that are too short", () => {
    const lines = createRedaction(["first-line\r\nshort\n  the third line  \n"]);
    expect(lines.text("> first-line\n> short\n> the third line\n")).toBe(`> ${MARKER}\n> short\n> ${MARKER}\n`);
    expect(lines.text("first-line\nshort\n  the third line  \n")).toBe(MARKER);
    expect(lines.text(JSON.stringify({ line: "the third line" }))).toBe(`{"line":"${MARKER}"}`);
  });

  it("AGENT-10 shorter than the minimum is left as it is, and the marker is never longer than what it hides", () => {
    expect(createRedaction(["1234567"]).text("pin 1234567")).toBe("pin 1234567");
    expect(createRedaction(["12345678"]).text("pin 12345678")).toBe(`pin ${MARKER}`);
    expect(MARKER.length).toBeLessThanOrEqual(SHORTEST_REDACTED);
  });

  it("AGENT-10 is hidden in results and errors, also in names of fields", () => {
    const hidden = redaction.value({ a: [1, null, { [`key ${SECRET}`]: `x${SECRET}` }], b: true });
    expect(hidden).toEqual({ a: [1, null, { [`key ${MARKER}`]: `x${MARKER}` }], b: true });
  });
});

describe("secrets that are recognized by their form", () => {
  const redaction = createRedaction([]);

  it("AGENT-10 are hidden as kit hides them: tokens, bundles and private keys", () => {
    const dashes = "-----";
    const pem = `${dashes}BEGIN EC PRIVATE KEY${dashes}\nMHcCAQEE\nabc=\n${dashes}END EC PRIVATE KEY${dashes}`;
    const texts = [
      `x ${TOKEN} y`,
      `x ${TOKEN}.${"q".repeat(20)} y`,
      `x ${TOKEN}.short y`,
      `hfhfhfx_${"a".repeat(16)}`,
      `org.${TOKEN}`,
      `hfx_${"a".repeat(15)}`,
      `\\n${TOKEN}`,
      `x hfbundle1.abc.def y`,
      `x ${pem} y`,
      `x ${JSON.stringify(pem)} y`,
      `x ${dashes}BEGIN PRIVATE KEY${dashes}\nMHcC`,
      `x ${dashes}BEGIN PUBLIC KEY${dashes}\nMHcC`,
    ];
    for (const text of texts) {
      const likeKit = redact(text)
        .replaceAll("hfbundle[redacted]", `hfbundle1.${MARKER}`)
        .replace(/\[redacted( private key)?\]/g, MARKER);
      expect(inPieces(redaction, [text]).replace(/\[secret\]\.\[secret\]/g, MARKER), text).toBe(likeKit);
    }
  });

  it("AGENT-10 are hidden one inside the other", () => {
    const dashes = "-----";
    const hidden = redaction.text(`hfx_${dashes}BEGIN PRIVATE KEY${dashes}\nMHcCAQEE`);
    expect(hidden).not.toContain("MHcC");
    expect(redaction.text("hfx_hfbundle1.abcdef.ghi")).not.toMatch(/abcdef|ghi/);
  });
});

describe("output in pieces", () => {
  const alphabet = fc.constantFrom(
    ...["a", "b", "ab", "%", "4", "41", "\\", "u", "0061", "n", "\n", "\r", " ", "+", "=", "-", "é", "😀"],
    ...["\ud83d", "\ude00", "hf", "hfx_", "hfbundle1.", ".", "-----BEGIN PRIVATE KEY-----", TOKEN],
  );
  const secretOf = fc
    .array(fc.constantFrom("a", "b", "4", "%", "\\", "\n", "\r", " ", "+", "é", "😀", '"'), {
      minLength: 8,
      maxLength: 12,
    })
    .map((parts) => parts.join(""));
  const textOf = (secrets: readonly string[]) =>
    fc
      .array(
        fc.oneof(
          alphabet,
          fc
            .tuple(fc.constantFrom(...secrets), fc.constantFrom(...Object.values(forms)), fc.nat(30), fc.nat(30))
            .map(([secret, form, from, cut]) => form(secret).slice(from % 3, form(secret).length - (cut % 4))),
          fc
            .tuple(fc.constantFrom(...secrets), fc.constantFrom(...Object.values(forms)))
            .map(([secret, form]) => form(secret)),
        ),
        { maxLength: 12 },
      )
      .map((parts) => parts.join(""));

  it("AGENT-10 is redacted as the whole is, wherever it is cut", () => {
    fc.assert(
      fc.property(
        fc
          .array(secretOf, { minLength: 1, maxLength: 3 })
          .chain((secrets) =>
            fc.tuple(fc.constant(secrets), textOf(secrets), fc.array(fc.nat(400), { maxLength: 8 })),
          ),
        ([secrets, text, cuts]) => {
          const redaction = createRedaction(secrets);
          const at = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
          const pieces = [0, ...at].map((from, index) => text.slice(from, at[index] ?? text.length));
          const whole = inPieces(redaction, [text]);
          expect(inPieces(redaction, pieces)).toBe(whole);
          expect(inPieces(redaction, text.split(""))).toBe(whole);
        },
      ),
      { numRuns: 400 },
    );
  });

  it("AGENT-10 never shows a known secret in any of its forms, whatever surrounds it", () => {
    fc.assert(
      fc.property(
        secretOf,
        fc.constantFrom(...Object.values(forms)),
        fc.array(alphabet, { maxLength: 6 }),
        fc.array(alphabet, { maxLength: 6 }),
        (secret, form, before, after) => {
          // The beginning of an escape before it would make another text of it.
          const apart = /[%\\]/.test(before.join("").slice(-8)) ? " " : "";
          const encoded = form(secret);
          const hidden = inPieces(createRedaction([secret]), [...before, apart, encoded, ...after]);
          expect(hidden).toContain(MARKER);
          expect(hidden).not.toContain(encoded);
        },
      ),
      { numRuns: 400 },
    );
  });

  it("AGENT-10 is cut at every place, for every form", () => {
    const redaction = createRedaction([SECRET]);
    for (const form of Object.values(forms)) {
      const text = `a${form(SECRET)}b`;
      const whole = redaction.text(text);
      for (let at = 0; at <= text.length; at += 1) {
        expect(inPieces(redaction, [text.slice(0, at), text.slice(at)])).toBe(whole);
      }
    }
  });

  it("AGENT-10 flows: only what may begin a secret is held back", () => {
    const stream = createRedaction(["s3cret-value"]).stream();
    expect(stream.add("Compiling 1 of 7 …\n")).toBe("Compiling 1 of 7 …\n");
    expect(stream.add("the key is s3cret-")).toBe("the key is ");
    expect(stream.add("tive\n")).toBe("s3cret-tive\n");
    expect(stream.add("s3cret-value")).toBe("");
    expect(stream.add("\n")).toBe(`${MARKER}\n`);
  });

  it("AGENT-10 holds back a limited number of characters, whatever a script prints", () => {
    const secret = "s3cret-value";
    const most = 200;
    const longest = (piece: string) => {
      const stream = createRedaction([secret]).stream();
      let added = 0;
      let shown = 0;
      let held = 0;
      for (let count = 0; count < 2_000; count += 1) {
        added += piece.length;
        shown += stream.add(piece).length;
        held = Math.max(held, added - shown);
      }
      return held;
    };
    const encoded = Buffer.from(secret).toString("base64");
    for (const piece of [
      "\n",
      "\r",
      " ",
      "s",
      "%",
      "\\",
      "\\\\",
      "hf",
      "-",
      "7",
      encoded.charAt(0),
      "-----BEGIN A",
      "\ud83d",
    ]) {
      expect(longest(piece), JSON.stringify(piece)).toBeLessThan(most);
    }
  });

  it("AGENT-10 takes time in proportion to the output, also for the longest secret that repeats itself", () => {
    const redaction = createRedaction(["ab".repeat(32_768)]);
    const stream = redaction.stream();
    let shown = stream.add("ab".repeat(32_767));
    shown += stream.add("ab".repeat(2_000));
    expect(shown + stream.end()).toBe(MARKER);
  });
});
