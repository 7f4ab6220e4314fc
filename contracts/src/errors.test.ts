import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ApiError, ErrorEnvelope, errorCatalogue, errorCodes } from "./errors.ts";

const page = readFileSync(new URL("../../docs/reference/errors.md", import.meta.url), "utf8");

/** Those that are also reasons, and one that has a page of its own. */
const withRunbook: string[] = [
  ...["cert_expired", "identity_revoked", "identity_retired", "node_quarantined", "certificate_header_refused"],
  ...["terminal_token_mint_failed", "terminal_session_unknown", "terminal_token_refused"],
  ...["ingress_identity_refused", "terminal_relay_unavailable"],
];

describe("the error catalogue", () => {
  it("is what the reference page shows, no more and no less", () => {
    const rows = [...page.matchAll(/^\| `(\w+)` \| (\d+) \| (yes|no) \| (.+) \| (.+) \|$/gm)];
    const shown = rows.map(([, code, status, retry, message, nextStep]) => [
      code,
      { status: Number(status), message, retryable: retry === "yes", nextStep },
    ]);
    expect(Object.fromEntries(shown)).toEqual(errorCatalogue);
    expect(rows).toHaveLength(errorCodes.length);
  });

  it.for(errorCodes)("tells what happened, and what to do now: %s", (code) => {
    const { status, message, nextStep, retryable } = errorCatalogue[code];
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(600);
    expect(message).toMatch(/^[A-Z].*\.$/);
    expect(nextStep).toMatch(/^[A-Z].*\.$/);
    // A client's mistake stays one when it is repeated; the exceptions are having asked too often, or too early.
    const tooEarly = code === "result_not_ready" || code === "lease_not_connected";
    expect(retryable).toBe(status >= 500 || status === 429 || tooEarly);
  });

  it.for(errorCodes)("OPS-04 makes an envelope that a client accepts, with its runbook: %s", (code) => {
    const error = new ApiError(code, { details: { limit: 3 } });
    const envelope = error.envelope("abc-123");
    expect(ErrorEnvelope.parse(JSON.parse(JSON.stringify(envelope)))).toEqual({
      code,
      message: errorCatalogue[code].message,
      correlation_id: "abc-123",
      retryable: errorCatalogue[code].retryable,
      next_step: errorCatalogue[code].nextStep,
      ...(withRunbook.includes(code) ? { runbook: `/runbooks/${code}` } : {}),
      details: { limit: 3 },
    });
    expect(error.status).toBe(errorCatalogue[code].status);
  });

  it("lets a call say more exactly what happened", () => {
    const error = new ApiError("name_taken", { message: "There is a project `work` already." });
    expect(error.envelope("x").message).toBe("There is a project `work` already.");
    expect(error.details).toEqual({});
  });

  it("takes no envelope with a code of somebody else's", () => {
    const foreign = { ...new ApiError("conflict").envelope("x"), code: "E_OTHER" };
    expect(ErrorEnvelope.safeParse(foreign).success).toBe(false);
  });
});
