import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { escapeReader, type Typed } from "./escapes.ts";

/** What becomes of text that arrives in these pieces: what is sent on, with commands in angle brackets. */
function typed(...pieces: string[]): string {
  const read = escapeReader();
  const text = (one: Typed) => ("send" in one ? one.send.toString() : `<${one.command}>`);
  return pieces.flatMap((piece) => read(Buffer.from(piece)).map(text)).join("");
}

describe("escapes at the beginning of a line", () => {
  it.for([
    { pieces: ["~."], becomes: "<disconnect>", why: "the first line has a beginning too" },
    { pieces: ["ls\r~."], becomes: "ls\r<disconnect>", why: "after Enter" },
    { pieces: ["ls\r", "~", "."], becomes: "ls\r<disconnect>", why: "in pieces" },
    { pieces: ["ls ~."], becomes: "ls ~.", why: "not within a line" },
    { pieces: ["\r~?~."], becomes: "\r<help><disconnect>", why: "one after the other" },
    { pieces: ["\r~~."], becomes: "\r~.", why: "a doubled one is one" },
    { pieces: ["\r~/bin/x\r"], becomes: "\r~/bin/x\r", why: "a path is a path" },
    { pieces: ["\r~", "\r~."], becomes: "\r~\r<disconnect>", why: "a line of a single one" },
    { pieces: ["é~.", "\n~."], becomes: "é~.\n<disconnect>", why: "bytes beyond ASCII are no line ends" },
  ])("TERM-10 $why", ({ pieces, becomes }) => {
    expect(typed(...pieces)).toBe(becomes);
  });

  it("TERM-10 is the same in whatever pieces it arrives", () => {
    const piece = fc.array(fc.constantFrom("~", ".", "?", "\r", "\n", "a"), { maxLength: 4 });
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const texts = pieces.map((one) => one.join(""));
        const whole = texts.join("");
        const apart = typed(...texts);
        // A tilde that ends the text may still be held back, in both.
        expect(apart).toBe(typed(whole));
      }),
    );
  });

  it("TERM-10 passes on unchanged what holds no tilde", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const plain = Buffer.from(bytes.filter((byte) => byte !== 0x7e));
        const sent = escapeReader()(plain).flatMap((one) => ("send" in one ? [one.send] : []));
        expect(Buffer.concat(sent)).toEqual(plain);
      }),
    );
  });
});
