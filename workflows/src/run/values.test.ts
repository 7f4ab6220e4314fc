// Values with many expressions hold no more than one of them at a time, and not more than a result may have.

import { describe, expect, it } from "vitest";
import { fill, MOST_FILLED_BYTES } from "./values.ts";

describe("FLOW-01 the values of a node", () => {
  it("are evaluated one after the other, whatever the form of the value", async () => {
    let running = 0;
    const most: number[] = [];
    const evaluate = async (expression: string) => {
      most.push(++running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return expression.trim();
    };
    const value = { a: ["${{ b }}${{ c }}", "${{ d }}", 1, null], e: { f: "${{ g }}", h: undefined }, i: "j" };
    const filled = { a: ["bc", "d", 1, null], e: { f: "g" }, i: "j" };
    expect(await fill(value, {}, evaluate)).toEqual(filled);
    expect(Math.max(...most)).toBe(1);
  });

  it.each([
    ["one text", (count: number) => "${{ x }}".repeat(count)],
    ["many texts", (count: number) => Array.from({ length: count }, () => "${{ x }}")],
  ])("of %s have a limit together", async (_, make) => {
    let evaluated = 0;
    const evaluate = async () => {
      evaluated += 1;
      return "x".repeat(MOST_FILLED_BYTES / 4 - 2);
    };
    await fill(make(4), {}, evaluate);
    await expect(fill(make(1_000), {}, evaluate)).rejects.toMatchObject({ code: "too_large" });
    expect(evaluated).toBe(4 + 5);
  });
});
