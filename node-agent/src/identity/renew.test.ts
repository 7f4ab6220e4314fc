import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { renewalDue, renewalDueAt } from "./renew.ts";

const HOUR = 3_600_000;
const certificate = { serial: "1", notBefore: 0, notAfter: 24 * HOUR };

describe("renewal", () => {
  it.for([
    [0, 0.4],
    [0.5, 0.5],
    [0.999999, 0.6],
  ] as const)("ID-03 is due near half the certificate's life: chance %d", ([random, share]) => {
    expect(renewalDueAt(certificate, random) / certificate.notAfter).toBeCloseTo(share, 4);
    expect(renewalDue(certificate, renewalDueAt(certificate, random) - 1, random)).toBe(false);
    expect(renewalDue(certificate, renewalDueAt(certificate, random), random)).toBe(true);
  });

  it("ID-03 is due long before the end, for any life and any chance", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2e12 }),
        fc.integer({ min: 60_000, max: 1e11 }),
        fc.double({ min: 0, max: 0.999999, noNaN: true }),
        (notBefore, life, random) => {
          const due = renewalDueAt({ serial: "1", notBefore, notAfter: notBefore + life }, random);
          expect(due - notBefore).toBeGreaterThanOrEqual(Math.floor(life * 0.4));
          expect(due - notBefore).toBeLessThanOrEqual(Math.ceil(life * 0.6));
        },
      ),
    );
  });
});
