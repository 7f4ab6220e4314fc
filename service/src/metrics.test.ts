import { describe, expect, it, vi } from "vitest";
import { createMetrics } from "./metrics.ts";

describe("a gauge that is read", () => {
  const series = async (read: () => Promise<Record<string, number>>) => {
    const metrics = createMetrics("test");
    metrics.gaugeByReason("holdfast_things_late", "Things that are late", read);
    const text = () => metrics.registry.metrics();
    return async () => (await text()).split("\n").filter((line) => line.startsWith("holdfast_things_late"));
  };

  it("AUDIT-03 reports the current number for each reason", async () => {
    let late = 2;
    const read = await series(async () => ({ lost: late, slow: 0 }));
    expect(await read()).toEqual([
      'holdfast_things_late{reason="lost",process="test"} 2',
      'holdfast_things_late{reason="slow",process="test"} 0',
    ]);
    late = 3;
    expect((await read())[0]).toContain(" 3");
  });

  it("AUDIT-03 reports no old number when it cannot be read", async () => {
    let answer = Promise.resolve({ lost: 1 });
    const read = await series(() => answer);
    expect(await read()).toHaveLength(1);
    answer = Promise.reject(new Error("the database is away"));
    expect(await read()).toEqual([]);
  });

  it("AUDIT-03 keeps nobody waiting for what does not answer", async () => {
    vi.useFakeTimers();
    try {
      const read = await series(() => new Promise(() => undefined));
      const values = read();
      await vi.advanceTimersByTimeAsync(2_000);
      expect(await values).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });
});
