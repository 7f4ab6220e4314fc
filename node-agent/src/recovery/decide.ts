// Whether an agent requests a new identity, and when: functions of plain data, the same for real and simulated agents. The
// api decides whether it gets one. Time is a parameter, in milliseconds.

import type { RecoveryCause, RecoveryToken } from "@holdfast/contracts/node/recovery";
import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";
import { exhaustive } from "@holdfast/kit/exhaustive";
import type { CertificateFacts } from "../identity/identity-file.ts";
import type { RecoveryState } from "./state.ts";

/** A failure of the link, and what is in force. */
export type LinkProblem = {
  reason: DiagnosticReason;
  /** The server's own code; undefined: something else responded, or nothing. */
  code: string | undefined;
  /** How many failures in a row were about trust in the server, this one included. */
  untrusted: number;
  certificate: CertificateFacts | undefined;
  /** By this host's clock. */
  now: number;
  /** The server's clock minus this host's; undefined: not known. */
  skewSeconds: number | undefined;
  /** A token was sent, and its response is not known. */
  sent: boolean;
};

/** Fewer may be a moment in a deployment, or one wrong replica. */
const UNTRUSTED_FAILURES = 3;

/** Why a new identity would help; undefined: it would not, or nothing says so. */
export function recoveryCause(problem: LinkProblem): RecoveryCause | undefined {
  const { reason, code } = problem;
  switch (reason) {
    case "identity_key_missing":
      return "identity_lost";
    case "cert_expired":
      return "cert_expired";
    case "edge_rate_limited":
    case "identity_retired":
      return undefined;
    case "identity_revoked":
      // A request whose response was lost has replaced the certificate in force.
      return problem.sent ? "identity_rejected" : undefined;
    case "control_plane_unreachable":
      // The server itself reports that it cannot serve: it could not issue a certificate either.
      return code === undefined && isExpired(problem) ? "cert_expired" : undefined;
    default:
      break;
  }
  if (isExpired(problem)) return "cert_expired";
  switch (reason) {
    case "auth_failed":
      return "identity_rejected";
    case "server_tls_untrusted":
    case "trust_bundle_invalid":
    case "clock_skew":
      return problem.untrusted >= UNTRUSTED_FAILURES ? "server_untrusted" : undefined;
    default:
      return undefined;
  }
}

export function isAboutTrust(reason: DiagnosticReason): boolean {
  return reason === "server_tls_untrusted" || reason === "trust_bundle_invalid" || reason === "clock_skew";
}

/** Before a token is sent, the server's signed time decides whether this clock is right. */
function isExpired({ certificate, now, skewSeconds = 0 }: LinkProblem): boolean {
  return certificate !== undefined && certificate.notAfter <= now + skewSeconds * 1000;
}

/** `usable`: not known to be too old, which only the server's signed time proves: this host's clock may be wrong. */
export type TokenVerdict = "none" | "other_profile" | "expired" | "usable";

export function judgeToken(
  token: RecoveryToken | undefined,
  facts: { profile: string; isExpired: boolean },
): TokenVerdict {
  if (token === undefined) return "none";
  if (token.profile !== facts.profile) return "other_profile";
  return facts.isExpired ? "expired" : "usable";
}

export type Decision =
  | { do: "report_no_token" }
  | { do: "wait"; ms: number }
  /** An attempt is due and not made. */
  | { do: "suppress"; ms: number }
  | { do: "attempt" };

export function decideRecovery(facts: {
  token: TokenVerdict;
  /** Until the pause after the last attempt is over. */
  pauseMs: number;
  rejected: RecoveryState["rejected"];
  /** By this host's clock. */
  now: number;
}): Decision {
  if (facts.token !== "usable") return { do: "report_no_token" };
  if (facts.pauseMs > 0) return { do: "wait", ms: facts.pauseMs };
  const suppressedMs = suppressedFor(facts.rejected, facts.now);
  return suppressedMs > 0 ? { do: "suppress", ms: suppressedMs } : { do: "attempt" };
}

const FIRST_SUPPRESSION_MS = 900_000;
const LONGEST_SUPPRESSION_MS = 86_400_000;

/** Of the next attempt, after so many recovered certificates were rejected in a row. */
export function suppressionMs(count: number): number {
  return Math.min(LONGEST_SUPPRESSION_MS, FIRST_SUPPRESSION_MS * 2 ** Math.min(count - 1, 10));
}

/** A clock that was set back does not prolong it. */
export function suppressedFor(rejected: RecoveryState["rejected"], now: number): number {
  if (rejected === null) return 0;
  return Math.min(Math.max(0, rejected.until - now), suppressionMs(rejected.count));
}

/** A recovered certificate was rejected before it worked once. One that is simply too old by now was not. */
export function isFreshRejected(problem: LinkProblem, unproved: string | null): boolean {
  const { certificate } = problem;
  if (certificate === undefined || certificate.serial !== unproved || isExpired(problem)) return false;
  return recoveryCause(problem) !== undefined;
}

/** How an attempt ended. */
export type Ending =
  /** Nobody, or nobody who could prove that it is the server, responded. */
  | "unreachable"
  | "untrusted"
  | "rate_limited"
  /** The server itself gave this node a time to come back. */
  | "in_line"
  /** This host's clock is wrong, or its disk cannot be written. */
  | "host"
  /** The server still has the old connection of this node, which ends by itself. */
  | "not_yet"
  /** Only an operator can change the server's decision. */
  | "refused"
  /** Anything else that may be different the next time. */
  | "failed";

/** So that the nodes of a fleet do not arrive at once. */
export const FIRST_DELAY_MS = 5_000;
/** Longer values are ignored: a misconfigured proxy must not keep a node offline for a day. */
const LONGEST_RETRY_AFTER_MS = 600_000;

/** `failures`: how many attempts failed before this one. */
export function pauseAfter(
  ending: { kind: Ending; retryAfterMs: number | undefined; failures: number },
  random: number,
): number {
  const own = backoffDelay(policyOf(ending.kind), ending.failures, random);
  const requested = Math.min(ending.retryAfterMs ?? 0, LONGEST_RETRY_AFTER_MS) * (1 + random / 10);
  // The line is served all the time, and its times are whole seconds.
  if (ending.kind === "in_line") return Math.max(own, Math.round(requested + random * 1000));
  return Math.max(own, Math.round(requested));
}

function policyOf(kind: Ending): BackoffPolicy {
  switch (kind) {
    case "unreachable":
      // As often as the link retries: a whole fleet may wait for the end of the same outage.
      return { firstMs: 5_000, maxMs: 60_000 };
    case "host":
    case "not_yet":
      return { firstMs: 10_000, maxMs: 60_000 };
    case "rate_limited":
      return { firstMs: 10_000, maxMs: 120_000 };
    case "in_line":
      // A long one grows only where the server keeps sending the node away.
      return { firstMs: 1_000, maxMs: 60_000 };
    case "untrusted":
    case "failed":
      return { firstMs: 10_000, maxMs: 600_000 };
    case "refused":
      return { firstMs: 1_200_000, maxMs: 3_600_000 };
    default:
      return exhaustive(kind);
  }
}
