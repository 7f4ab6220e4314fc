import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createPace } from "./pace.ts";

describe("the pace of recoveries", () => {
  it("ID-05 never lets more through than a second's allowance and what time adds", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.array(fc.integer({ min: 0, max: 500 }), { minLength: 1, maxLength: 300 }),
        (perSecond, gaps) => {
          let at = 0;
          let through = 0;
          const pace = createPace(perSecond, () => at);
          for (const gap of gaps) {
            at += gap;
            if (pace.take() === undefined) through += 1;
          }
          expect(through).toBeLessThanOrEqual(perSecond + (at * perSecond) / 1000 + 1e-6);
        },
      ),
    );
  });

  it("ID-05 gives each of a crowd a time of its own, in a line", () => {
    let at = 0;
    const pace = createPace(10, () => at);
    const waits = Array.from({ length: 110 }, () => pace.take());
    expect(waits.slice(0, 10)).toEqual(Array(10).fill(undefined));
    const sent = waits.slice(10).map(Number);
    expect(sent).toEqual(sent.toSorted((a, b) => a - b));
    // Ten seconds' worth of nodes get a time within ten seconds.
    expect([sent[0], sent.at(-1)]).toEqual([1, 10]);
    at = 10_000;
    expect(pace.take()).toBeUndefined();
  });

  it("ID-05 keeps nobody waiting for more than five minutes", () => {
    const pace = createPace(1, () => 0);
    const waits = Array.from({ length: 1000 }, () => pace.take() ?? 0);
    expect(Math.max(...waits)).toBe(300);
  });
});
