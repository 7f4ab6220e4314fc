import { CallError } from "@holdfast/contracts/client";
import { ApiError, type ErrorCode } from "@holdfast/contracts/errors";
import { describe, expect, it } from "vitest";
import { problemOf } from "./problem.ts";

const thrown = (code: ErrorCode, details: Record<string, unknown> = {}) => {
  const error = new ApiError(code, { details });
  return new CallError(error.status, error.envelope("c-1"));
};

describe("errors told to people", () => {
  it("SEC-03 says how long to wait when attempts are limited", () => {
    expect(problemOf(thrown("rate_limit_exceeded", { retry_after_seconds: 41.2 })).waitSeconds).toBe(42);
    expect(problemOf(thrown("rate_limit_exceeded")).waitSeconds).toBeUndefined();
  });

  it("AUDIT-03 carries the correlation id of every answer", () => {
    expect(problemOf(thrown("forbidden"))).toMatchObject({ code: "forbidden", correlationId: "c-1" });
  });

  it("OPS-04 carries the runbook of an error that has one", () => {
    expect(problemOf(thrown("terminal_token_mint_failed")).runbook).toBe("/runbooks/terminal_token_mint_failed");
    expect(problemOf(thrown("forbidden")).runbook).toBeUndefined();
  });

  it("names the fields that were not accepted", () => {
    const fields = [{ field: "body.expires_in_days", problem: "Too big" }, "nonsense", null];
    expect(problemOf(thrown("invalid_request", { fields })).fields).toEqual([
      { field: "expires in days", problem: "Too big", path: "expires_in_days" },
    ]);
  });

  it("tells an unreachable server from a fault of the page", () => {
    expect(problemOf(new TypeError("Failed to fetch")).message).toBe("Holdfast is unreachable.");
    expect(problemOf(new Error("x")).code).toBeUndefined();
  });
});
