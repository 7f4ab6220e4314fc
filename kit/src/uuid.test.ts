import fc from "fast-check";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { uuidv7Time } from "./uuid.ts";

let uuidv7: (now?: number) => string;
// The order within a process is kept in the module: each test gets a process's beginning.
beforeEach(async () => {
  vi.resetModules();
  ({ uuidv7 } = await import("./uuid.ts"));
});

const form = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const millisecondsOf = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
const NOW = 1_750_000_000_000;

function expectStrictlyIncreasing(ids: string[]): void {
  const misplaced = ids.findIndex((id, index) => index > 0 && id <= (ids[index - 1] ?? ""));
  expect(misplaced, `${ids[misplaced - 1]} then ${ids[misplaced]}`).toBe(-1);
}

describe("uuidv7", () => {
  it("has the form of RFC 9562 and carries its millisecond", () => {
    let now = 0;
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 40 }), (later) => {
        now += later;
        const id = uuidv7(now);
        expect(id).toMatch(form);
        expect(millisecondsOf(id)).toBe(now);
      }),
    );
  });

  it("takes the present by default", () => {
    const before = Date.now();
    const at = millisecondsOf(uuidv7());
    expect(at).toBeGreaterThanOrEqual(before);
    expect(at).toBeLessThanOrEqual(Date.now());
  });

  it("stays in order over more ids than one millisecond can number", () => {
    const ids = Array.from({ length: 20_000 }, () => uuidv7(NOW));
    expectStrictlyIncreasing(ids);
    expect(ids.every((id) => form.test(id))).toBe(true);
    expect(millisecondsOf(ids.at(-1) ?? ""), "the overflow borrows from the next milliseconds").toBeLessThan(
      NOW + 10,
    );
  });

  it("stays in order whatever the clock does", () => {
    const jump = fc.oneof(fc.constant(0), fc.integer({ min: -10_000, max: 10_000 }));
    fc.assert(
      fc.property(fc.array(jump, { minLength: 2, maxLength: 300 }), (jumps) => {
        let now = NOW;
        const ids = jumps.map((by) => {
          now += by;
          return uuidv7(now);
        });
        expectStrictlyIncreasing(ids);
      }),
    );
  });

  it("follows the clock again once it has caught up", () => {
    uuidv7(NOW);
    expect(millisecondsOf(uuidv7(NOW - 60_000))).toBe(NOW);
    expect(millisecondsOf(uuidv7(NOW + 1))).toBe(NOW + 1);
  });

  it("SEC-03 cannot be guessed from the one before: the last 62 bits are random", () => {
    const tails = Array.from({ length: 2_000 }, () => uuidv7(NOW).slice(19));
    expect(new Set(tails).size).toBe(tails.length);
    const bits = tails.map((tail) => BigInt(`0x${tail.replace("-", "")}`));
    for (let bit = 0n; bit < 62n; bit += 1n) {
      const ones = bits.filter((value) => (value >> bit) & 1n).length;
      // Twelve standard deviations: a fixed bit fails, chance does not.
      expect(Math.abs(ones - 1_000), `bit ${bit}`).toBeLessThan(270);
    }
  });

  it("tells when it was made", () => {
    const at = Date.UTC(2031, 4, 6, 7, 8, 9, 123);
    expect(uuidv7Time(uuidv7(at))).toEqual(new Date(at));
  });
});
