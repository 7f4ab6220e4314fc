import { describe, expect, it } from "vitest";
import { tooLong } from "./check-sizes.ts";

const lines = (count: number, text = "work();") => Array.from({ length: count }, () => text).join("\n");
const declared = (length: number) => `export function long() {\n${lines(length - 2)}\n}\n`;

describe("the check of sizes", () => {
  it("accepts a file of 400 lines and no more", () => {
    expect(tooLong("a.ts", `${lines(400)}\n`)).toEqual([]);
    expect(tooLong("a.ts", lines(401))).toEqual(["a.ts: 401 lines; a file has at most 400"]);
  });

  it("accepts a function of 150 lines and no more", () => {
    expect(tooLong("a.ts", declared(150))).toEqual([]);
    expect(tooLong("a.ts", `\n${declared(151)}`)).toEqual([
      "a.ts:2: long has 151 lines; a function has at most 150",
    ]);
  });

  it.each([
    ["arrow functions", "const long = () => {", "}"],
    ["methods", "class A { long() {", "} }"],
    ["methods of objects", "const a = { long() {", "} }"],
    ["functions within others", "const make = () => { function long() {", "} }"],
    ["components", "const long = () => { return <div>", "</div>; }"],
  ])("sees %s", (_, begin, end) => {
    const body = begin.endsWith("<div>") ? lines(149, "<br />") : lines(149);
    const problems = tooLong("a.tsx", `${begin}\n${body}\n${end}`);
    expect(problems.some((problem) => problem.includes("long has 151 lines"))).toBe(true);
  });
});
