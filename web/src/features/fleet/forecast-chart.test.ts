import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { areaOf, CHART, stepsOf, topOf } from "./forecast-chart.ts";

const at = "2026-03-01T03:00:00.000Z";

describe("the forecast's chart", () => {
  it("rises at the hour at which nodes are lost, over the whole width", () => {
    expect(stepsOf([0, 0, 5, 10], 10)).toBe("M0 96H160V96H320V48H480V0");
    expect(areaOf([0, 10], 10)).toBe("M0 96H480V0V96H0Z");
    expect(stepsOf([3], 3)).toBe("M0 0");
  });

  it("has a scale also without a lost node", () => {
    expect(topOf([])).toBe(1);
    expect(topOf([{ at, lost: 0, recovering: 0 }])).toBe(1);
    expect(topOf([{ at, lost: 7, recovering: 2 }])).toBe(7);
  });

  it("stays within its frame", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5_000), { minLength: 1, maxLength: 49 }), (values) => {
        const top = Math.max(1, ...values);
        const ys = [...stepsOf(values, top).matchAll(/(?:M0 |V)([\d.]+)/g)].map(([, y]) => Number(y));
        expect(ys).toHaveLength(values.length);
        expect(Math.min(...ys)).toBeGreaterThanOrEqual(0);
        expect(Math.max(...ys)).toBeLessThanOrEqual(CHART.height);
      }),
    );
  });
});
