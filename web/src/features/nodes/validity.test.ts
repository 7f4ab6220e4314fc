import { describe, expect, it } from "vitest";
import { validityOf } from "./validity.ts";

const hour = 3_600_000;
const start = Date.parse("2026-03-01T00:00:00.000Z");
const at = (hours: number) => new Date(start + hours * hour).toISOString();
const certificate = (change: object = {}) => ({
  serial: "0a",
  not_before: at(0),
  not_after: at(24),
  renewal_due_at: at(12),
  revoked_at: null,
  ...change,
});

describe("the validity of a certificate", () => {
  it.each([
    ["before it begins", -1, {}, "Not valid yet", 0],
    ["half way", 12, {}, "Valid", 0.5],
    ["a little after its renewal was due", 12.4, {}, "Valid", 12.4 / 24],
    ["long after its renewal was due", 18.1, {}, "Renewal overdue", 18.1 / 24],
    ["when nobody said when renewal is due", 18.1, { renewal_due_at: null }, "Renewal overdue", 18.1 / 24],
    ["after its end", 24.1, {}, "Expired", 1],
    ["revoked", 6, { revoked_at: at(5) }, "Revoked", 0.25],
  ])("ID-02 %s", (_, hours, change, word, passed) => {
    const validity = validityOf(certificate(change), start + hours * hour);
    expect(validity.word).toBe(word);
    expect(validity.passed).toBeCloseTo(passed);
  });
});
