import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createTicks } from "./ticks.ts";

const EVERY_MS = 100;

describe("ticks", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("TASK-02 do each work once, never early and hardly late, and nothing that was prevented", async () => {
    const delays = fc.array(
      fc.record({ ms: fc.integer({ min: 4, max: 5_000 }), startAt: fc.nat(3_000), prevented: fc.boolean() }),
    );
    await fc.assert(
      fc.asyncProperty(delays, async (waits) => {
        const ticks = createTicks(EVERY_MS);
        const done: number[][] = waits.map(() => []);
        waits.forEach(({ ms, startAt, prevented }, index) => {
          setTimeout(() => {
            const from = performance.now();
            const prevent = ticks.after(ms, () => done[index]?.push(performance.now() - from));
            if (prevented) setTimeout(prevent, ms / 2);
          }, startAt);
        });
        await vi.advanceTimersByTimeAsync(10_000);
        for (const [index, { ms, prevented }] of waits.entries()) {
          if (prevented) expect(done[index]).toEqual([]);
          else {
            expect(done[index]).toHaveLength(1);
            expect(done[index]?.[0]).toBeGreaterThanOrEqual(ms - 1);
            expect(done[index]?.[0]).toBeLessThanOrEqual(ms + EVERY_MS + 1);
          }
        }
        expect(vi.getTimerCount()).toBe(0);
      }),
    );
  });

  it("TASK-02 wake the process once for all that is due at about the same time", async () => {
    const ticks = createTicks(EVERY_MS);
    for (let count = 0; count < 50; count += 1) ticks.after(1_000 + count / 10, () => undefined);
    expect(vi.getTimerCount()).toBeLessThanOrEqual(2);
    await vi.advanceTimersByTimeAsync(1_200);
    expect(vi.getTimerCount()).toBe(0);
  });
});
