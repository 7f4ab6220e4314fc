import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Sql } from "../database/connect.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { gatherChanges } from "./changes.ts";
import type { ChangedRow, SignalledTopic } from "./topic.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("changes on their way to open pages", () => {
  it("DASH-04 are published at once after a rest, and together when they follow each other", async () => {
    let signal: (ids: readonly string[]) => void = () => expect.fail("nobody listens");
    const published: string[][] = [];
    const topic: SignalledTopic = {
      ...{ topic: "verdict", signal: "verdict" },
      select: async (_, ids) => ids.map((id) => ({ id, org_id: "o" }) as ChangedRow),
    };
    const subscribe: Signals["subscribe"] = (_, listener) => {
      signal = listener;
      return () => undefined;
    };
    gatherChanges({
      topics: [topic],
      signals: { subscribe } as unknown as Signals,
      system: {} as Sql,
      listening: () => true,
      publish: (_org, _topic, rows) => published.push(rows.map(({ id }) => id)),
      onFailed: (error) => expect.fail(String(error)),
    });
    signal(["a"]);
    await vi.advanceTimersByTimeAsync(0);
    expect(published).toEqual([["a"]]);
    signal(["b"]);
    await vi.advanceTimersByTimeAsync(50);
    signal(["c"]);
    await vi.advanceTimersByTimeAsync(49);
    expect(published).toEqual([["a"]]);
    await vi.advanceTimersByTimeAsync(2);
    expect(published).toEqual([["a"], ["b", "c"]]);
    await vi.advanceTimersByTimeAsync(1_000);
    signal(["d"]);
    await vi.advanceTimersByTimeAsync(0);
    expect(published).toEqual([["a"], ["b", "c"], ["d"]]);
  });
});
