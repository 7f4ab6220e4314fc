import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLimits } from "./limits.ts";

type Knock = { from: string; as: string };
const limits = [
  { most: 5, keyOf: () => "all" },
  { most: 2, keyOf: ({ from }: Knock) => `from ${from}` },
  { most: 1, keyOf: ({ as }: Knock) => `as ${as}` },
];

describe("limits on what anyone can cause", () => {
  it("SEC-03 hold for each key and in all, and begin anew with the next window", () => {
    let now = 0;
    const admits = createLimits(limits, { windowMs: 1000, now: () => now });
    expect(admits({ from: "a", as: "1" })).toBe(true);
    expect(admits({ from: "b", as: "1" })).toBe(false);
    expect(admits({ from: "a", as: "2" })).toBe(true);
    expect(admits({ from: "a", as: "3" })).toBe(false);
    now = 999;
    expect(admits({ from: "b", as: "1" })).toBe(false);
    now = 1000;
    expect(admits({ from: "a", as: "1" })).toBe(true);
  });

  it("SEC-03 admit no more than the total from any number of places", () => {
    const knock = fc.record({ from: fc.string(), as: fc.string() });
    fc.assert(
      fc.property(fc.array(knock, { maxLength: 200 }), (knocks) => {
        const admits = createLimits(limits, { windowMs: 1000, now: () => 0 });
        const admitted = knocks.filter(admits);
        expect(admitted.length).toBeLessThanOrEqual(5);
        for (const [, own] of Map.groupBy(admitted, ({ from }) => from)) expect(own.length).toBeLessThanOrEqual(2);
        expect(new Set(admitted.map(({ as }) => as)).size).toBe(admitted.length);
      }),
    );
  });

  it("SEC-03 remember a bounded number of keys, and the total all the same", () => {
    const many = [{ most: 20_000, keyOf: () => "all" }, ...limits.slice(1)];
    const admits = createLimits(many, { windowMs: 1000, now: () => 0 });
    let admitted = 0;
    for (let index = 0; index < 50_000; index += 1) {
      if (admits({ from: String(index), as: String(index) })) admitted += 1;
    }
    expect(admitted).toBe(20_000);
  });
});
