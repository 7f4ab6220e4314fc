import { describe, expect, it } from "vitest";
import { retryAfter } from "./exchange.ts";

describe("retry-after", () => {
  it.for([
    ["7", 7],
    ["0", 0],
    ["Sun, 01 Mar 2026 12:00:30 GMT", 30],
    ["Sun, 01 Mar 2026 11:00:00 GMT", 0],
    ["soon", undefined],
    ["-5", undefined],
    [undefined, undefined],
  ] as const)("AGENT-02 %s is %s seconds", ([header, seconds]) => {
    expect(retryAfter(header, Date.parse("2026-03-01T12:00:00Z"))).toBe(seconds);
  });
});
