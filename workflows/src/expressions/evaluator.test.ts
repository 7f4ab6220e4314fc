// Expressions are evaluated within limits, and what runs away is stopped without harm to the next one.

import { afterAll, describe, expect, it } from "vitest";
import { openEvaluator } from "./evaluator.ts";

const limits = { milliseconds: 5_000, steps: 200_000, memoryMib: 32, bytes: 100_000 };
const evaluator = openEvaluator({ limits, processes: 2 });
/** For what only the clock can stop. */
const impatient = openEvaluator({ limits: { ...limits, milliseconds: 300, steps: Number.MAX_SAFE_INTEGER } });
afterAll(() => Promise.all([evaluator.close(), impatient.close()]));

const context = {
  input: { items: [{ price: 2 }, { price: 3 }], text: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!" },
};

describe("FLOW-01 evaluating expressions", () => {
  it.each([
    ["$sum(input.items.price)", 5],
    ['{"a": {"b": [input.items.price]}}', { a: { b: [2, 3] } }],
    ["input.nothing", undefined],
    ["null", null],
    ["$sum", undefined],
  ])("evaluates %s", async (expression, expected) => {
    expect(await evaluator.evaluate(expression, context)).toEqual(expected);
  });

  it("evaluates many at once, each with its own context", async () => {
    const all = Array.from({ length: 50 }, (_, index) => evaluator.evaluate("input * 2", { input: index }));
    expect(await Promise.all(all)).toEqual(Array.from({ length: 50 }, (_, index) => index * 2));
  });

  it.each([
    ["an endless recursion", "($f := function($n) { $f($n + 1) }; $f(0))", "too_long"],
    [
      "nested loops",
      "$count($map([1..3000], function($a) { $map([1..3000], function($b) { $a * $b }) }))",
      "too_long",
    ],
    ["a large result", '$pad("", 200000, "x")', "too_large"],
    ["a function that differs each time", "$random()", "failed"],
    ["text as code", '$eval("1 + 1")', "failed"],
    ["a wrong type", '1 + "a"', "failed"],
    ["the prototype of objects", '$lookup(input, "constructor")("return process")()', "failed"],
  ])("stops %s", async (_, expression, code) => {
    await expect(evaluator.evaluate(expression, context)).rejects.toMatchObject({ code });
    expect(await evaluator.evaluate("input.items[0].price", context)).toBe(2);
  });

  it("stops a recursion without a step limit by the clock, and what waits behind it goes on", async () => {
    const runaway = impatient.evaluate("($f := function($n) { $f($n + 1) }; $f(0))", context);
    const next = impatient.evaluate("1 + 1", context);
    await expect(runaway).rejects.toMatchObject({ code: "too_long" });
    expect(await next).toBe(2);
  });

  it("stops a pattern that backtracks without end", async () => {
    await expect(impatient.evaluate("$contains(input.text, /^(a+)+$/)", context)).rejects.toMatchObject({
      code: "too_long",
    });
  });

  it("stops what uses too much memory, and nothing else", async () => {
    const greedy = openEvaluator({ limits: { ...limits, milliseconds: 60_000, steps: Number.MAX_SAFE_INTEGER } });
    const expression = "($f := function($list) { $f($append($list, $list)) }; $f([1..10000]))";
    await expect(greedy.evaluate(expression, context)).rejects.toMatchObject({ code: "too_large" });
    expect(await greedy.evaluate("1", context)).toBe(1);
    await greedy.close();
  });

  it("gives expressions nothing of the process that asks", async () => {
    const expression = '$lookup($string, "constructor")("return JSON.stringify(process.env)")()';
    await expect(evaluator.evaluate(expression, context)).rejects.toMatchObject({ code: "failed" });
  });

  it("refuses a context that is too large", async () => {
    await expect(evaluator.evaluate("1", { input: "x".repeat(limits.bytes) })).rejects.toMatchObject({
      code: "too_large",
    });
  });
});
