import { describe, expect, it } from "vitest";
import { MOST_ATTEMPTS, pauseAfter } from "./retry.ts";

const pauses = (once: boolean) => {
  const found: number[] = [];
  for (let attempts = 1; ; attempts += 1) {
    const pause = pauseAfter(attempts, { once });
    if (pause === undefined) return found;
    found.push(pause);
  }
};

describe("a message that was not accepted", () => {
  it("DRIFT-16 is sent again after growing pauses, for about a day", () => {
    const all = pauses(false);
    expect(all.slice(0, 8)).toEqual([5, 15, 45, 135, 405, 1_215, 3_600, 3_600]);
    expect(all).toHaveLength(MOST_ATTEMPTS - 1);
    expect(all.toSorted((a, b) => a - b)).toEqual(all);
    expect(all.reduce((sum, pause) => sum + pause, 0) / 3_600).toBeCloseTo(23.5, 0);
  });

  it("DRIFT-16 is sent once only if it is a test", () => {
    expect(pauses(true)).toEqual([]);
  });
});
