// Differences of texts by line.

import fc from "fast-check";
import { expect, it } from "vitest";
import { diffLines } from "./line-diff.ts";

const text = fc
  .array(fc.constantFrom("a", "b", "c", ""), { minLength: 1, maxLength: 8 })
  .map((lines) => lines.join("\n"));

it("DASH-06 shows what was removed and what was added", () => {
  expect(diffLines("a\nb\nc", "a\nx\nc")).toEqual([
    { kind: "same", text: "a" },
    { kind: "removed", text: "b" },
    { kind: "added", text: "x" },
    { kind: "same", text: "c" },
  ]);
});

it("DASH-06 contains both texts, and nothing else", () => {
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after);
      const of = (kind: string) =>
        lines.filter((line) => line.kind === "same" || line.kind === kind).map((line) => line.text);
      expect(of("removed").join("\n")).toBe(before);
      expect(of("added").join("\n")).toBe(after);
      if (before === after) expect(lines.every(({ kind }) => kind === "same")).toBe(true);
    }),
  );
});
