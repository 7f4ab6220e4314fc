import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseTime } from "./audit.ts";

const now = Date.parse("2026-03-10T12:00:00Z");
const parse = (text: string) => parseTime(text, undefined, now);

describe("times on the command line", () => {
  it.for([
    ["30m", "2026-03-10T11:30:00.000Z"],
    ["12h", "2026-03-10T00:00:00.000Z"],
    ["7d", "2026-03-03T12:00:00.000Z"],
    ["2026-03-01T08:00:00Z", "2026-03-01T08:00:00.000Z"],
    ["2026-03-01T08:00:00+02:00", "2026-03-01T06:00:00.000Z"],
    ["2026-03-01", "2026-03-01T00:00:00.000Z"],
  ] as const)("AUDIT-01 reads %s", ([text, expected]) => {
    expect(parse(text)).toBe(expected);
  });

  it.for([
    "yesterday",
    "7w",
    "-1h",
    "1.5h",
    "",
    "2026-13-01",
    "1h ago",
    "5",
    "March 1, 2026",
    "9999999m",
    "999999d",
  ])("AUDIT-01 refuses %s", (text) => {
    expect(() => parse(text)).toThrow("Use an ISO 8601 time, or an age such as 30m, 12h, 7d.");
  });

  it("AUDIT-01 returns the form that the contract accepts, or throws", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.date({ noInvalidDate: true }).map(String)), (text) => {
        let parsed: string | undefined;
        try {
          parsed = parse(text);
        } catch (error) {
          expect((error as Error).message).toContain("ISO 8601");
        }
        if (parsed !== undefined) expect(parsed).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      }),
    );
  });
});
