import { recoveryCauses } from "@holdfast/contracts/node/recovery";
import { diagnosticReasonNames } from "@holdfast/contracts/reasons/node";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decideRecovery,
  type Ending,
  isFreshRejected,
  judgeToken,
  type LinkProblem,
  pauseAfter,
  recoveryCause,
  suppressedFor,
  suppressionMs,
  type TokenVerdict,
} from "./decide.ts";

const HOUR = 3_600_000;
const MINUTE = 60_000;
const now = 1_800_000_000_000;
const current = { serial: "0a", notBefore: now - HOUR, notAfter: now + HOUR };
const expired = { serial: "0a", notBefore: now - 2 * HOUR, notAfter: now - HOUR };
const problem = (changes: Partial<LinkProblem>): LinkProblem => ({
  ...{ reason: "api_unreachable", code: undefined, untrusted: 0, certificate: current, now, skewSeconds: 0 },
  ...{ sent: false, ...changes },
});
const causeOf = (changes: Partial<LinkProblem>) => recoveryCause(problem(changes));

describe("the cause of a recovery", () => {
  it("ID-05 is one of few failures while the certificate is in date", () => {
    const causes = diagnosticReasonNames.flatMap((reason) => {
      const cause = causeOf({ reason, code: "some_code", untrusted: 9 });
      return cause ? [[reason, cause]] : [];
    });
    expect(Object.fromEntries(causes)).toEqual({
      identity_key_missing: "identity_lost",
      cert_expired: "cert_expired",
      auth_failed: "identity_rejected",
      server_tls_untrusted: "server_untrusted",
      trust_bundle_invalid: "server_untrusted",
      clock_skew: "server_untrusted",
    });
    expect(new Set(causes.map(([, cause]) => cause))).toEqual(new Set(recoveryCauses));
  });

  it("ID-05 is none for a node that is retired or revoked, and for a server that is busy", () => {
    for (const certificate of [current, expired, undefined]) {
      for (const reason of ["identity_retired", "identity_revoked", "edge_rate_limited"] as const) {
        expect(causeOf({ reason, code: "some_code", certificate, untrusted: 9 }), reason).toBeUndefined();
      }
      const busy = { reason: "control_plane_unreachable", code: "database_unavailable", certificate } as const;
      expect(causeOf(busy)).toBeUndefined();
    }
  });

  it("ID-05 DRIFT-14 is none where the server has seen another certificate, or none", () => {
    expect(causeOf({ reason: "edge_terminates_tls", code: "certificate_missing" })).toBeUndefined();
    expect(causeOf({ reason: "edge_terminates_tls", code: "identity_revoked" })).toBeUndefined();
    expect(causeOf({ reason: "auth_failed", code: undefined }), "a TLS alert").toBe("identity_rejected");
  });

  it("ID-04 is there for a replaced certificate only if this node has requested another one", () => {
    expect(causeOf({ reason: "identity_revoked", sent: true })).toBe("identity_rejected");
    expect(causeOf({ reason: "identity_retired", sent: true })).toBeUndefined();
  });

  it("ID-14 is expiry by the server's clock where it is known, whatever responds at the address", () => {
    for (const reason of ["api_unreachable", "control_plane_unreachable", "auth_failed"] as const) {
      expect(causeOf({ reason, certificate: expired }), reason).toBe("cert_expired");
      expect(causeOf({ reason, certificate: expired, skewSeconds: undefined }), reason).toBe("cert_expired");
    }
    const ahead = { reason: "api_unreachable", certificate: expired, skewSeconds: -2 * 3600 } as const;
    expect(causeOf(ahead), "this host's clock is ahead").toBeUndefined();
    expect(causeOf({ reason: "api_unreachable", skewSeconds: 2 * 3600 }), "and behind").toBe("cert_expired");
    expect(causeOf({ reason: "api_unreachable", certificate: undefined })).toBeUndefined();
  });

  it.for([0, 1, 2])("ID-06 is not there after %i failures to trust the server", (untrusted) => {
    for (const reason of ["server_tls_untrusted", "trust_bundle_invalid", "clock_skew"] as const) {
      expect(causeOf({ reason, untrusted })).toBeUndefined();
      expect(causeOf({ reason, untrusted: 3 })).toBe("server_untrusted");
    }
  });
});

describe("a recovery token", () => {
  const token = { token: "hfr_x", seq: 3, profile: "lab", issued_at: "2027-01-01T00:00:00Z", expires_at: "" };
  it("ID-04 is used only for the profile in force, and until the server's signed time says that it is too old", () => {
    expect(judgeToken(undefined, { profile: "lab", isExpired: false })).toBe("none");
    expect(judgeToken(token, { profile: "other", isExpired: false })).toBe("other_profile");
    expect(judgeToken(token, { profile: "lab", isExpired: true })).toBe("expired");
    expect(judgeToken(token, { profile: "lab", isExpired: false })).toBe("usable");
  });
});

describe("a decision about a recovery", () => {
  const facts = { token: "usable" as TokenVerdict, pauseMs: 0, rejected: null, now };

  it("ID-04 is never an attempt without a usable token", () => {
    for (const token of ["none", "other_profile", "expired"] as const) {
      expect(decideRecovery({ ...facts, token })).toEqual({ do: "report_no_token" });
    }
    expect(decideRecovery(facts)).toEqual({ do: "attempt" });
  });

  it("AGENT-03 is an attempt only after the pause and after the suppression", () => {
    const rejected = { count: 1, until: now + 5 * MINUTE };
    expect(decideRecovery({ ...facts, pauseMs: 1 })).toEqual({ do: "wait", ms: 1 });
    expect(decideRecovery({ ...facts, pauseMs: 1, rejected })).toEqual({ do: "wait", ms: 1 });
    expect(decideRecovery({ ...facts, rejected })).toEqual({ do: "suppress", ms: 5 * MINUTE });
    expect(decideRecovery({ ...facts, rejected, now: rejected.until })).toEqual({ do: "attempt" });
  });

  it("AGENT-03 is suppressed for longer with each rejected certificate, up to a day", () => {
    expect([1, 2, 3, 4].map((count) => suppressionMs(count) / MINUTE)).toEqual([15, 30, 60, 120]);
    expect(suppressionMs(50)).toBe(24 * HOUR);
    expect(suppressedFor(null, now)).toBe(0);
    expect(suppressedFor({ count: 1, until: now - 1 }, now)).toBe(0);
    expect(suppressedFor({ count: 1, until: now + 48 * HOUR }, now), "the clock was set back").toBe(15 * MINUTE);
  });

  it("AGENT-03 takes a recovered certificate for rejected only if it never worked and is not too old", () => {
    const rejected = problem({ reason: "auth_failed", code: "certificate_untrusted" });
    expect(isFreshRejected(rejected, "0a")).toBe(true);
    expect(isFreshRejected(rejected, "0b")).toBe(false);
    expect(isFreshRejected(rejected, null)).toBe(false);
    expect(isFreshRejected(problem({ reason: "cert_expired" }), "0a"), "the server's clock differs").toBe(true);
    expect(isFreshRejected(problem({ reason: "cert_expired", certificate: expired }), "0a")).toBe(false);
    expect(isFreshRejected(problem({ reason: "api_unreachable" }), "0a")).toBe(false);
  });
});

describe("the pause after an attempt", () => {
  const kinds: Ending[] = [
    "unreachable",
    "untrusted",
    "rate_limited",
    "in_line",
    "host",
    "not_yet",
    "refused",
    "failed",
  ];
  const longest: Record<Ending, number> = {
    ...{ unreachable: MINUTE, host: MINUTE, not_yet: MINUTE, in_line: MINUTE, rate_limited: 2 * MINUTE },
    ...{ untrusted: 10 * MINUTE, failed: 10 * MINUTE, refused: HOUR },
  };
  const least: Partial<Record<Ending, number>> = { refused: 10 * MINUTE, in_line: 500 };

  it("ID-05 grows, is never zero and never longer than its limit", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...kinds),
        fc.nat({ max: 50 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (kind, failures, random) => {
          const pause = pauseAfter({ kind, retryAfterMs: undefined, failures }, random);
          expect(pause).toBeGreaterThanOrEqual(least[kind] ?? 2_500);
          expect(pause).toBeLessThanOrEqual(longest[kind]);
          const later = pauseAfter({ kind, retryAfterMs: undefined, failures: failures + 1 }, random);
          expect(later).toBeGreaterThanOrEqual(pause);
        },
      ),
    );
  });

  it("ID-05 is at least as long as the server requested, and spread, but no day", () => {
    const asked = (retryAfterMs: number, random: number) =>
      pauseAfter({ kind: "rate_limited", retryAfterMs, failures: 0 }, random);
    expect(asked(300_000, 0)).toBe(300_000);
    expect(asked(300_000, 0.5)).toBe(315_000);
    expect(asked(86_400_000, 0)).toBe(600_000);
  });

  it("ID-05 ends within a second of the time that the server gave in its line, at first", () => {
    const inLine = (random: number, failures: number) =>
      pauseAfter({ kind: "in_line", retryAfterMs: 3_000, failures }, random);
    expect([inLine(0, 0), inLine(0.5, 0), inLine(0.5, 1)]).toEqual([3_000, 3_650, 3_650]);
    expect(inLine(0, 6), "a server that keeps sending it away").toBeGreaterThan(20_000);
  });
});
