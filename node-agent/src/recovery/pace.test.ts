import { afterEach, describe, expect, it, vi } from "vitest";
import { createPace } from "./pace.ts";

afterEach(() => void vi.useRealTimers());

describe("the pace of recovery", () => {
  it("ID-05 begins with a random delay, slows down with each failure, and begins anew when all is well", () => {
    let now = 1_000;
    const pace = createPace({ now: () => now, random: () => 0.5, wake() {} });
    expect(pace.remainingMs()).toBe(2_500);
    now += 2_500;
    expect(pace.remainingMs()).toBe(0);
    const pauses = [1, 2, 3].map(() => {
      pace.ended({ kind: "failed", retryAfterMs: undefined });
      return pace.remainingMs();
    });
    expect(pauses).toEqual([7_500, 15_000, 30_000]);
    pace.reset();
    expect(pace.remainingMs()).toBe(2_500);
    pace.ended({ kind: "failed", retryAfterMs: undefined });
    expect(pace.remainingMs()).toBe(7_500);
  });

  it("ID-05 wakes once, and not after a reset", () => {
    vi.useFakeTimers();
    const wake = vi.fn();
    const pace = createPace({ now: () => 0, random: () => 0, wake });
    pace.wakeIn(100);
    pace.wakeIn(50);
    vi.advanceTimersByTime(100);
    expect(wake).toHaveBeenCalledTimes(1);
    pace.wakeIn(100);
    pace.reset();
    vi.advanceTimersByTime(1_000);
    expect(wake).toHaveBeenCalledTimes(1);
  });
});
