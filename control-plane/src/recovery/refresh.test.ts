import { uuidv7 } from "@holdfast/kit/uuid";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isDue } from "./refresh.ts";

const HOUR = 3_600_000;

describe("when a node gets its next recovery token", () => {
  it("ID-04 is within the hour, and before half of its lifetime has passed", () => {
    fc.assert(
      fc.property(fc.integer({ min: 300, max: 604_800 }), fc.uuid(), (maxAgeSeconds, nodeId) => {
        const now = Date.now();
        const agedBy = (ms: number) => {
          const expires_at = new Date(now + maxAgeSeconds * 1000 - ms).toISOString();
          return isDue(nodeId, { expires_at }, { maxAgeSeconds, now });
        };
        expect(agedBy(0)).toBe(false);
        // A heartbeat comes every minute.
        expect(agedBy(Math.min(HOUR - 60_000, (maxAgeSeconds * 1000) / 2))).toBe(true);
      }),
    );
  });

  it("DRIFT-12 is at once when the limit was lowered below what is left of its token", () => {
    const now = Date.now();
    const expires_at = new Date(now + 24 * HOUR).toISOString();
    expect(isDue(uuidv7(), { expires_at }, { maxAgeSeconds: 86_400, now })).toBe(false);
    expect(isDue(uuidv7(), { expires_at }, { maxAgeSeconds: 3_600, now })).toBe(true);
  });

  it("ID-04 is spread over a quarter of an hour in a fleet", () => {
    const now = Date.now();
    const due = (minutes: number) =>
      ids.filter((id) => {
        const expires_at = new Date(now + 24 * HOUR - minutes * 60_000).toISOString();
        return isDue(id, { expires_at }, { maxAgeSeconds: 86_400, now });
      }).length;
    const ids = Array.from({ length: 400 }, () => uuidv7());
    expect(due(39)).toBe(0);
    expect(due(55)).toBe(400);
    expect(due(47)).toBeGreaterThan(100);
    expect(due(47)).toBeLessThan(300);
  });
});
