import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { packLine, unpackLine } from "./packed-line.ts";

describe("a packed line", () => {
  it("comes back as it was, whatever a terminal or a mail did to its white space", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat(), (text, cut) => {
        const line = packLine("prefix1.", "aGVhZA", text);
        expect(line).toMatch(/^prefix1\.aGVhZA\.[\w-]+$/);
        const at = cut % line.length;
        const wrapped = `  ${line.slice(0, at)}\r\n ${line.slice(at)}\n`;
        expect(unpackLine("prefix1.", wrapped)).toEqual({ head: "aGVhZA", text: text.toWellFormed() });
      }),
    );
  });

  it.for([
    "",
    "prefix1.",
    "prefix1.aGVhZA",
    "prefix1.aGVhZA.",
    "prefix1.aGVhZA.AAAA.AAAA",
    "other1.aGVhZA.AwA",
    "prefix1.aGVhZA.____",
  ])("is none if a part is missing or wrong: %s", (line) => {
    expect(unpackLine("prefix1.", line)).toBeUndefined();
  });

  it("is not unpacked beyond a size that anybody pastes", () => {
    expect(unpackLine("prefix1.", packLine("prefix1.", "aGVhZA", "0".repeat(2 * 1024 * 1024)))).toBeUndefined();
  });
});
