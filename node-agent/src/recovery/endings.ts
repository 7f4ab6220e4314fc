// What a failed attempt to recover means: how long to wait, and under which reason of the catalogue it is recorded. A
// refusal by the api is never mistaken for an attempt that did not reach it. Pure.

import type { DiagnosticReason } from "@holdfast/contracts/reasons/node";
import { HostProblem } from "../identity/state-directory.ts";
import { classify, LinkFailure } from "../link/failures.ts";
import type { Ending } from "./decide.ts";
import { UnusableAnswer } from "./request.ts";

export type Ended = {
  kind: Ending;
  reason: DiagnosticReason;
  detail: string;
  retryAfterMs: number | undefined;
  correlationId: string | undefined;
  /** The server refused this token, whatever it is used for. */
  isAboutToken?: boolean;
};

/** The server's verdicts that have a reason of their own. */
const verdicts: Partial<Record<string, { kind: Ending; reason: DiagnosticReason }>> = {
  identity_revoked: { kind: "refused", reason: "identity_revoked" },
  node_retired: { kind: "refused", reason: "identity_retired" },
  node_quarantined: { kind: "refused", reason: "node_quarantined" },
  host_clock_skew: { kind: "host", reason: "clock_skew" },
  recovery_not_needed: { kind: "not_yet", reason: "recovery_refused" },
};

/** The network, not the recovery, is at fault if the link has the same problem. */
const ofNetwork: ReadonlySet<DiagnosticReason> = new Set([
  "api_unreachable",
  "api_name_unresolved",
  "control_plane_unreachable",
]);

/** `link`: why the link fails. */
export function endingOf(error: unknown, link: DiagnosticReason): Ended {
  const none = { retryAfterMs: undefined, correlationId: undefined };
  if (error instanceof HostProblem) return { kind: "host", reason: error.reason, detail: error.message, ...none };
  if (error instanceof UnusableAnswer) {
    const detail = `the response to the recovery request is not used: ${error.message}`;
    return { ...none, kind: "failed", reason: "trust_update_refused", detail, correlationId: error.correlationId };
  }
  if (!(error instanceof LinkFailure)) {
    const detail = `recovery failed: ${(error as Error).message}`;
    return { kind: "failed", reason: "recovery_enrollment_blocked", detail, ...none };
  }
  return { ...ofFailure(error, link), correlationId: error.correlationId };
}

function ofFailure({ failure }: LinkFailure, link: DiagnosticReason): Omit<Ended, "correlationId"> {
  const { reason, detail, retryAfterMs, code } = classify(failure);
  const said = { detail: `recovery: ${detail}`, retryAfterMs };
  if (reason === "edge_rate_limited") {
    const kind = code !== undefined && retryAfterMs !== undefined ? "in_line" : "rate_limited";
    return { kind, reason, ...said };
  }
  if (code === undefined) {
    const kind = reason === "server_tls_untrusted" ? "untrusted" : "unreachable";
    const isOutage = ofNetwork.has(reason) && ofNetwork.has(link);
    return { kind, reason: isOutage ? reason : "recovery_enrollment_blocked", ...said };
  }
  const verdict = verdicts[code];
  if (verdict) return { ...verdict, ...said };
  if (reason === "control_plane_unreachable") return { kind: "unreachable", reason, ...said };
  return {
    kind: "refused",
    reason: "recovery_refused",
    isAboutToken: code.startsWith("recovery_token_"),
    ...said,
  };
}
