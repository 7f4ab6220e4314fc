import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decideReport, FORGOTTEN_AFTER_MS, pauseAfter, type Series } from "./decide.ts";

const WINDOW = 300_000;

/** Which of the failures at these times the audit gets a row for. */
function rowsOf(times: readonly number[], windowMs = WINDOW): { at: number; kind: "first" | "summary" }[] {
  let series: Series | undefined;
  return times.flatMap((at) => {
    const kind = decideReport(series, at, windowMs);
    const reports = kind === "first" ? 1 : (series?.reports ?? 0) + (kind === "summary" ? 1 : 0);
    series = { lastSeenAt: at, reportedAt: kind === "count" ? (series?.reportedAt ?? at) : at, reports };
    return kind === "count" ? [] : [{ at, kind }];
  });
}

describe("a repeated failure", () => {
  it("AUDIT-02 gets one row within the window, and a summary when it persists beyond it", () => {
    expect(rowsOf([0, 10_000, WINDOW - 1])).toEqual([{ at: 0, kind: "first" }]);
    expect(rowsOf([0, 10_000, WINDOW, WINDOW + 1])).toEqual([
      { at: 0, kind: "first" },
      { at: WINDOW, kind: "summary" },
    ]);
  });

  it("AUDIT-02 is summed up at growing intervals, at last every twelve windows", () => {
    const everyTenSeconds = Array.from({ length: 6 * 60 * 8 }, (_, index) => index * 10_000);
    const minutes = rowsOf(everyTenSeconds).map(({ at }) => at / 60_000);
    expect(minutes).toEqual([0, 5, 15, 35, 75, 135, 195, 255, 315, 375, 435]);
    expect([0, 1, 2, 3, 4, 5, 40].map((reports) => pauseAfter(reports, 1))).toEqual([1, 1, 2, 4, 8, 12, 12]);
  });

  it("AUDIT-02 is news again after a day without it", () => {
    expect(rowsOf([0, FORGOTTEN_AFTER_MS])).toMatchObject([{ kind: "first" }, { kind: "first" }]);
    expect(rowsOf([0, FORGOTTEN_AFTER_MS - 1])).toMatchObject([{ kind: "first" }, { kind: "summary" }]);
  });

  it("AUDIT-02 never gets two rows within a window, whatever its times, and always the first", () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 2 * 3_600_000 }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(gaps, fc.integer({ min: 1_000, max: 3_600_000 }), (all, windowMs) => {
        let at = 0;
        const times = all.map((gap) => (at += gap));
        const rows = rowsOf(times, windowMs);
        expect(rows[0]).toEqual({ at: times[0], kind: "first" });
        for (const [index, row] of rows.entries()) {
          const before = rows[index - 1];
          if (before) expect(row.at - before.at).toBeGreaterThanOrEqual(windowMs);
        }
      }),
    );
  });
});
