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

  it("ID-05 exchanges two tokens at once, the others in their order, also after a failure", async () => {
    const pace = createPace(10, () => 0);
    const begun: number[] = [];
    const gates = Array.from({ length: 4 }, () => Promise.withResolvers<number>());
    const results = gates.map(({ promise }, index) =>
      pace.run(() => {
        begun.push(index);
        return promise;
      }),
    );
    expect(begun).toEqual([0, 1]);
    gates[1]?.reject(new Error("refused"));
    await expect(results[1]).rejects.toThrow("refused");
    expect(begun).toEqual([0, 1, 2]);
    for (const [index, gate] of gates.entries()) gate.resolve(index);
    expect(await Promise.all([results[0], results[2], results[3]])).toEqual([0, 2, 3]);
    expect(await pace.run(async () => "next")).toBe("next");
  });

  it("ID-05 sends nodes away when a second's worth of them waits for the database", async () => {
    let at = 0;
    const pace = createPace(10, () => at);
    const database = Promise.withResolvers<void>();
    const exchanges: Promise<void>[] = [];
    const arrive = () => {
      at += 100;
      const wait = pace.take();
      if (wait === undefined) exchanges.push(pace.run(() => database.promise));
      return wait;
    };
    const waits = Array.from({ length: 13 }, arrive);
    expect(waits.slice(0, 12)).toEqual(Array(12).fill(undefined));
    expect(waits[12]).toBe(1);
    database.resolve();
    await Promise.all(exchanges);
    expect(arrive()).toBeUndefined();
  });
});
