import { CallError } from "@holdfast/contracts/client";
import { ApiError } from "@holdfast/contracts/errors";
import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { describe, expect, it } from "vitest";
import { failureOfFrame, failureOfRefusal, noticedFailure, remedyOf, reportOf } from "./failures.ts";

const refusal = (...given: ConstructorParameters<typeof ApiError>) => {
  const error = new ApiError(...given);
  return new CallError(error.status, error.envelope("c1"));
};
const described = { message: "Holdfast cannot be reached.", action: "Check the network.", retryable: true };
const ofRefusal = (error: unknown) => failureOfRefusal(error, () => described);

describe("a failure at the client", () => {
  it("TERM-09 has something to do about every code that can be tried again", () => {
    for (const [code, { retryable }] of Object.entries(terminalFailures))
      if (retryable) expect(remedyOf({ code, retryable }), code).not.toBe("none");
  });

  it("TERM-01 says why no token was granted", () => {
    const error = refusal("terminal_token_mint_failed", { message: "The allocation is being released." });
    const failure = ofRefusal(error);
    expect(failure).toMatchObject({
      code: "terminal_token_mint_failed",
      hop: "terminal_token_mint",
      message: terminalFailures.terminal_token_mint_failed.message,
      why: "The allocation is being released.",
      correlationId: "c1",
      owner: "tenant",
    });
    expect(failure.cause).toBe(error);
    expect(remedyOf(failure)).toBe("later");
    const onNode = refusal("terminal_token_mint_failed", { details: { owner: "node" } });
    expect(ofRefusal(onNode)).toMatchObject({ owner: "node" });
    expect(remedyOf(ofRefusal(refusal("forbidden")))).toBe("later");
    expect(remedyOf(ofRefusal(refusal("not_found")))).toBe("none");
    expect(ofRefusal(refusal("terminal_gateway_missing"))).toMatchObject({ retryable: true, owner: "operator" });
    expect(ofRefusal(refusal("not_found"))).toMatchObject({ code: "not_found", retryable: false });
  });

  it("TERM-01 leaves an error that is no answer to the environment's words", () => {
    const failure = ofRefusal(new TypeError("fetch failed"));
    expect(failure).toMatchObject({ code: "unreachable", owner: "operator", ...described });
    expect(remedyOf(failure)).toBe("same");
    const final = failureOfRefusal(new Error("bug"), () => ({ ...described, retryable: false }));
    expect(remedyOf(final)).toBe("none");
  });

  it("TERM-05 passes on a code that it does not know as the gateway describes it", () => {
    const words = { hop: "new_hop", owner: "moon", message: "m", action: "a", retryable: true };
    const failure = failureOfFrame({ code: "terminal_of_tomorrow", ...words, correlation_id: "c1" });
    expect(failure).toMatchObject({ message: "m", action: "a" });
    expect(remedyOf(failure)).toBe("same");
  });

  it("TERM-09 reports to the api only what only a client can know, and no more than it accepts", () => {
    const noticed = noticedFailure("terminal_public_route_missing", { why: "x".repeat(500), correlationId: "c1" });
    expect(reportOf(noticed)).toEqual({ code: "terminal_public_route_missing", detail: "x".repeat(400) });
    expect(reportOf(noticedFailure("terminal_ui_connecting_stuck", {}))).toEqual({
      code: "terminal_ui_connecting_stuck",
    });
    expect(reportOf({ ...noticed, code: "terminal_pty_failed" })).toBeUndefined();
  });
});
