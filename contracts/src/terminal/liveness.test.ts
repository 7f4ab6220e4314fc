import { describe, expect, it } from "vitest";
import { createLiveness, DETECTION_MS, PING_MS } from "./liveness.ts";

/** When a peer is given up that sends for the last time at `lastAt`; ticks come on time. */
function givenUpAt(lastAt: number, until = 100_000): number | undefined {
  const liveness = createLiveness(0);
  for (let at = PING_MS; at <= until; at += PING_MS) {
    if (liveness.tick(at, Math.min(at, lastAt)) === "unresponsive") return at;
  }
  return undefined;
}

describe("a peer that falls silent", () => {
  it("TERM-10 is noticed within ten seconds, whenever it dies", () => {
    expect(DETECTION_MS).toBeLessThanOrEqual(10_000);
    for (let lastAt = 0; lastAt < 2 * PING_MS; lastAt += 100) {
      const at = givenUpAt(30_000 + lastAt) ?? Number.POSITIVE_INFINITY;
      expect(at - (30_000 + lastAt), `it died at ${lastAt}`).toBeLessThanOrEqual(DETECTION_MS);
    }
  });

  it("TERM-10 is given up only after it was asked and given time to answer", () => {
    const liveness = createLiveness(0);
    expect(liveness.tick(3_000, 1)).toBe("ask");
    expect(liveness.tick(6_000, 1)).toBe("ask");
    expect(liveness.tick(9_000, 1)).toBe("unresponsive");
    expect(liveness.silentSince()).toBe(3_000);
    expect(liveness.tick(12_000, 2)).toBe("ask");
  });

  it("TERM-10 keeps one that sends anything between two questions", () => {
    expect(givenUpAt(Number.POSITIVE_INFINITY)).toBeUndefined();
  });

  it("TERM-10 is asked again when we paused ourselves", () => {
    const liveness = createLiveness(0);
    liveness.tick(3_000, 1);
    liveness.tick(6_000, 1);
    expect(liveness.tick(60_000, 1)).toBe("ask");
    expect(liveness.tick(63_000, 1)).toBe("ask");
    expect(liveness.tick(66_000, 1)).toBe("unresponsive");
  });

  it("TERM-10 is not blamed while we do not read it", () => {
    const liveness = createLiveness(0);
    liveness.tick(3_000, 1);
    liveness.tick(6_000, 1);
    liveness.excuse(9_000);
    expect(liveness.tick(12_000, 1)).toBe("ask");
  });
});
