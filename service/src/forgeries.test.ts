import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { watchForgeries } from "./forgeries.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const from = (address: string) => ({ address, correlationId: `id-${address}` });

describe("forged certificates", () => {
  it("ID-13 are reported immediately the first time, then together once a minute, and each listener for itself", () => {
    const reported: unknown[] = [];
    const forgeries = watchForgeries((listener, { address, count }) => reported.push([listener, address, count]));
    forgeries.saw("api", from("a"));
    forgeries.saw("node_api", from("b"));
    expect(reported.splice(0)).toEqual([
      ["api", "a", 1],
      ["node_api", "b", 1],
    ]);
    for (let count = 0; count < 1000; count += 1) forgeries.saw("api", from(`c${count}`));
    expect(reported).toEqual([]);
    vi.advanceTimersByTime(60_000);
    expect(reported.splice(0)).toEqual([["api", "c999", 1000]]);
    forgeries.saw("api", from("d"));
    expect(reported).toEqual([]);
    vi.advanceTimersByTime(60_000);
    expect(reported.splice(0)).toEqual([["api", "d", 1]]);
    // A minute without any: the next one is a first again.
    vi.advanceTimersByTime(60_000);
    forgeries.saw("api", from("e"));
    expect(reported.splice(0)).toEqual([["api", "e", 1]]);
  });

  it("ID-13 that are pending are reported when the process stops", () => {
    const reported: unknown[] = [];
    const forgeries = watchForgeries((listener, { count }) => reported.push([listener, count]));
    for (let count = 0; count < 3; count += 1) forgeries.saw("api", from("a"));
    forgeries.stop();
    expect(reported).toEqual([
      ["api", 1],
      ["api", 2],
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
