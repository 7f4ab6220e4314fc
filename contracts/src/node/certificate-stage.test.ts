import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { certificateStage } from "./certificate-stage.ts";

const HOUR = 3_600_000;
const day = { notBefore: 0, notAfter: 24 * HOUR };

describe("a certificate of a day", () => {
  it.for([
    [-HOUR, "current"],
    [0, "current"],
    [18 * HOUR, "current"],
    [18 * HOUR + 1, "renewal_overdue"],
    [24 * HOUR, "renewal_overdue"],
    [24 * HOUR + 1, "expired"],
  ] as const)("ID-03 is at %d ms %s", ([now, stage]) => {
    expect(certificateStage(day, now)).toBe(stage);
  });
});

describe("any certificate", () => {
  const certificates = fc
    .record({ notBefore: fc.integer({ min: 0, max: 2e12 }), validity: fc.integer({ min: 60_000, max: 1e11 }) })
    .map(({ notBefore, validity }) => ({ notBefore, notAfter: notBefore + validity }));

  it("ID-03 is not overdue while its renewal is only due, and overdue long before it ends", () => {
    fc.assert(
      fc.property(certificates, ({ notBefore, notAfter }) => {
        const at = (part: number) =>
          certificateStage({ notBefore, notAfter }, notBefore + (notAfter - notBefore) * part);
        expect([at(0.4), at(0.6), at(0.74)]).toEqual(["current", "current", "current"]);
        expect([at(0.76), at(0.99)]).toEqual(["renewal_overdue", "renewal_overdue"]);
      }),
    );
  });

  it("ID-03 only ever goes forward", () => {
    const order = ["current", "renewal_overdue", "expired"];
    fc.assert(
      fc.property(certificates, fc.integer({ min: 0, max: 3e12 }), fc.nat(1e11), (certificate, now, later) => {
        const [before, after] = [certificateStage(certificate, now), certificateStage(certificate, now + later)];
        expect(order.indexOf(after)).toBeGreaterThanOrEqual(order.indexOf(before));
      }),
    );
  });
});
