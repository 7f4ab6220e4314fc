import { listAudit } from "@holdfast/contracts/endpoints/audit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AuditFilters, auditFiltersFromSearch, auditQuery, isFiltered, ranges } from "./filters.ts";

const now = Date.parse("2026-03-01T03:00:00.000Z");

describe("audit filters", () => {
  it("AUDIT-01 keeps audit filters in the URL", () => {
    const filters: AuditFilters = {
      actor: "kai",
      action: "token.",
      target: "ci",
      result: "denied",
      correlation_id: "123",
      range: "24h",
      scope: "platform",
    };
    const text = new URLSearchParams(filters).toString();
    expect(auditFiltersFromSearch(Object.fromEntries(new URLSearchParams(text)))).toEqual(filters);
  });

  it("AUDIT-01 drops what an address got wrong instead of failing", () => {
    expect(
      auditFiltersFromSearch({ result: "maybe", range: "toString", actor: "  ", scope: "all", other: "x" }),
    ).toEqual({});
  });

  it("AUDIT-01 asks only for what the endpoint accepts, whatever the address says", () => {
    const search = fc.record(
      {
        actor: fc.string({ maxLength: 300 }),
        action: fc.string({ maxLength: 100 }),
        target: fc.string(),
        result: fc.string(),
        correlation_id: fc.string({ maxLength: 100 }),
        range: fc.constantFrom(...Object.keys(ranges), "9y"),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(search, (given) => {
        const query = auditQuery(auditFiltersFromSearch(given), now);
        expect(listAudit.query?.safeParse(query).success).toBe(true);
      }),
    );
  });

  it("AUDIT-01 turns a range into its beginning", () => {
    expect(auditQuery({ range: "1h", actor: "kai" }, now)).toEqual({
      actor: "kai",
      since: "2026-03-01T02:00:00.000Z",
    });
    expect(auditQuery({ scope: "platform" }, now)).toEqual({});
  });

  it("AUDIT-01 tells an empty trail from one that does not match", () => {
    expect(isFiltered({})).toBe(false);
    expect(isFiltered({ scope: "platform" })).toBe(false);
    expect(isFiltered({ range: "1h" })).toBe(true);
  });
});
