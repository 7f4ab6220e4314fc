import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Pending, pendingOf, renewalDue, renewalDueAt } from "./renew.ts";

const HOUR = 3_600_000;
const certificate = { serial: "1", notBefore: 0, notAfter: 24 * HOUR };
const due = (facts: { now: number; dueAt?: number; skewSeconds?: number; pending?: Pending }) =>
  renewalDue({ certificate, dueAt: 12 * HOUR, skewSeconds: 0, pending: "none", ...facts });

describe("renewal", () => {
  it.for([
    [0, 0.4],
    [0.5, 0.5],
    [0.999999, 0.6],
  ] as const)("ID-03 is due near half the certificate's lifetime: chance %d", ([random, share]) => {
    expect(renewalDueAt(certificate, random) / certificate.notAfter).toBeCloseTo(share, 4);
    const dueAt = renewalDueAt(certificate, random);
    expect(due({ dueAt, now: dueAt - 1 })).toBe(false);
    expect(due({ dueAt, now: dueAt })).toBe(true);
  });

  it("ID-03 is due long before the end, for any lifetime and any chance", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2e12 }),
        fc.integer({ min: 60_000, max: 1e11 }),
        fc.double({ min: 0, max: 0.999999, noNaN: true }),
        (notBefore, validity, random) => {
          const due = renewalDueAt({ serial: "1", notBefore, notAfter: notBefore + validity }, random);
          expect(due - notBefore).toBeGreaterThanOrEqual(Math.floor(validity * 0.4));
          expect(due - notBefore).toBeLessThanOrEqual(Math.ceil(validity * 0.6));
        },
      ),
    );
  });

  it.for([
    [1 * HOUR, 14 * 3600, false],
    [11 * HOUR, 14 * 3600, false],
    [13 * HOUR, -14 * 3600, false],
    [13 * HOUR, 61, false],
    [13 * HOUR, 60, true],
    // Overdue by one clock only.
    [19 * HOUR, -14 * 3600, false],
    [5 * HOUR, 14 * 3600, false],
    // Overdue by both: a host whose clock is minutes off for good.
    [19 * HOUR, 600, true],
    [19 * HOUR, -600, true],
    // The server takes it for expired, and would refuse to renew it.
    [19 * HOUR, 14 * 3600, false],
  ] as const)(
    "ID-03 ID-14 with %d ms of its lifetime over and a clock %d s behind: %s",
    ([now, skewSeconds, expected]) => {
      expect(due({ now, skewSeconds })).toBe(expected);
    },
  );

  it.for([
    ["none", true, true],
    ["not_yet_valid", true, false],
    ["to_be_tried", false, false],
    ["failed", true, true],
  ] as const)("ID-03 with a pending certificate that is %s", ([pending, agreeing, disagreeing]) => {
    expect(due({ now: 19 * HOUR, pending })).toBe(agreeing);
    expect(due({ now: 19 * HOUR, skewSeconds: 600, pending })).toBe(disagreeing);
  });

  it("ID-03 asks for another certificate when one has failed three times or cannot be used", () => {
    const now = { now: HOUR, serverNow: HOUR, failures: 0 };
    expect(pendingOf(undefined, now)).toBe("none");
    expect(pendingOf(certificate, now)).toBe("to_be_tried");
    expect(pendingOf(certificate, { ...now, failures: 2 })).toBe("to_be_tried");
    expect(pendingOf(certificate, { ...now, failures: 3 })).toBe("failed");
    expect(pendingOf({ ...certificate, notBefore: 2 * HOUR }, now)).toBe("not_yet_valid");
    expect(pendingOf({ ...certificate, notBefore: 2 * HOUR }, { ...now, serverNow: 3 * HOUR })).toBe(
      "not_yet_valid",
    );
    expect(pendingOf(certificate, { ...now, serverNow: 25 * HOUR })).toBe("failed");
  });
});
