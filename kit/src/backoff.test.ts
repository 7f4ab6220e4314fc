import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { backoffDelay } from "./backoff.ts";

const policies = fc
  .tuple(fc.integer({ min: 2, max: 60_000 }), fc.integer({ min: 0, max: 3_600_000 }))
  .map(([firstMs, more]) => ({ firstMs, maxMs: firstMs + more }));
const attempts = fc.integer({ min: 0, max: 10_000 });
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe("backoffDelay", () => {
  it("AGENT-02 never waits longer than the maximum, nor less than half its step", () => {
    fc.assert(
      fc.property(policies, attempts, chance, (policy, attempt, random) => {
        const delay = backoffDelay(policy, attempt, random);
        const step = Math.min(policy.maxMs, policy.firstMs * 2 ** Math.min(attempt, 60));
        expect(delay).toBeLessThanOrEqual(policy.maxMs);
        expect(delay).toBeLessThanOrEqual(step);
        expect(delay).toBeGreaterThanOrEqual(Math.floor(step / 2));
      }),
    );
  });

  it("AGENT-02 doubles until the maximum", () => {
    const policy = { firstMs: 100, maxMs: 1_000 };
    expect([0, 1, 2, 3, 4, 5].map((attempt) => backoffDelay(policy, attempt, 0))).toEqual([
      50, 100, 200, 400, 500, 500,
    ]);
  });

  it("AGENT-02 spreads clients that failed together", () => {
    fc.assert(
      fc.property(policies, attempts, (policy, attempt) => {
        fc.pre(policy.firstMs >= 4);
        expect(backoffDelay(policy, attempt, 0)).toBeLessThan(backoffDelay(policy, attempt, 0.999));
      }),
    );
  });
});
