import { describe, expect, it } from "vitest";
import { isDeeperThan } from "./json-depth.ts";

const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));

describe("depth of JSON", () => {
  it("TASK-04 is told without following it down", () => {
    expect(isDeeperThan(nested(64), 64)).toBe(false);
    expect(isDeeperThan(nested(65), 64)).toBe(true);
    expect(isDeeperThan(nested(5_000), 64)).toBe(true);
    expect(isDeeperThan({ a: [{ b: 1 }], c: null }, 3)).toBe(false);
    expect(isDeeperThan({ a: [{ b: 1 }], c: null }, 2)).toBe(true);
    for (const flat of [null, 1, "text", undefined, {}, []]) expect(isDeeperThan(flat, 1)).toBe(false);
  });
});
