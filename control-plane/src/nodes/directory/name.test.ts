import { NodeName } from "@holdfast/contracts/endpoints/enrollment";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nodeNameFrom, numbered } from "./name.ts";

describe("the name of a node", () => {
  it.for([
    ["gpu-07.example.com", "gpu-07.example.com"],
    ["Büro PC", "bu-ro-pc"],
    ["--a--", "a"],
    ["...", "node"],
    ["", "node"],
    ["電脳", "node"],
    ["UPPER_case", "upper-case"],
  ] as const)("ID-01 made from %j is %s", ([from, name]) => {
    expect(nodeNameFrom(from)).toBe(name);
  });

  it("ID-01 is valid whatever the machine calls itself, and with any number behind it", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 200 }),
        fc.integer({ min: 1, max: 99_999 }),
        (text, attempt) => {
          const name = numbered(nodeNameFrom(text), attempt);
          expect(NodeName.safeParse(name).data).toBe(name);
        },
      ),
    );
  });

  it("ID-01 differs for every number, also at its longest", () => {
    const longest = "a".repeat(63);
    expect(new Set([1, 2, 3, 10, 100].map((attempt) => numbered(longest, attempt))).size).toBe(5);
  });
});
