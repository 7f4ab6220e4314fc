import { describe, expect, it } from "vitest";
import { asksGatewayFirst, reconnectPauseMs } from "./reconnect.ts";

const tries = Array.from({ length: 40 }, (_, index) => index + 1);

describe("coming back", () => {
  it("TERM-10 pauses grow to half a minute and no further, a part of them by chance", () => {
    expect(tries.slice(0, 7).map((attempt) => reconnectPauseMs(attempt, 0))).toEqual([
      1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
    ]);
    for (const attempt of tries) {
      expect(reconnectPauseMs(attempt, 0)).toBeLessThanOrEqual(30_000);
      expect(reconnectPauseMs(attempt, 0.999)).toBeGreaterThanOrEqual(reconnectPauseMs(attempt, 0) * 0.75);
    }
  });

  it("TERM-01 asks for few tokens that no gateway takes, and still finds one that has moved", () => {
    expect(tries.filter((attempt) => !asksGatewayFirst(attempt))).toEqual([4, 8, 12, 16, 20, 24, 28, 32, 36, 40]);
  });
});
