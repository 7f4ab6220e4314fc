import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { watchForgeries } from "./forgeries.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const from = (address: string) => ({ address, correlationId: `id-${address}` });

describe("forged certificates", () => {
  it("ID-13 are told at once the first time, then together once a minute, and each listener for itself", () => {
    const told: unknown[] = [];
    const forgeries = watchForgeries((listener, { address, count }) => told.push([listener, address, count]));
    forgeries.saw("api", from("a"));
    forgeries.saw("node_api", from("b"));
    expect(told.splice(0)).toEqual([
      ["api", "a", 1],
      ["node_api", "b", 1],
    ]);
    for (let count = 0; count < 1000; count += 1) forgeries.saw("api", from(`c${count}`));
    expect(told).toEqual([]);
    vi.advanceTimersByTime(60_000);
    expect(told.splice(0)).toEqual([["api", "c999", 1000]]);
    forgeries.saw("api", from("d"));
    expect(told).toEqual([]);
    vi.advanceTimersByTime(60_000);
    expect(told.splice(0)).toEqual([["api", "d", 1]]);
    // A minute without any: the next one is a first again.
    vi.advanceTimersByTime(60_000);
    forgeries.saw("api", from("e"));
    expect(told.splice(0)).toEqual([["api", "e", 1]]);
  });

  it("ID-13 that wait are told when the process stops", () => {
    const told: unknown[] = [];
    const forgeries = watchForgeries((listener, { count }) => told.push([listener, count]));
    for (let count = 0; count < 3; count += 1) forgeries.saw("api", from("a"));
    forgeries.stop();
    expect(told).toEqual([
      ["api", 1],
      ["api", 2],
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
