// The code whose words describe a cause: what was observed, where that is more exact than the reason. An agent that
// cannot resolve the server's name and one that finds no route have the same reason and need different advice.

import type { ReasonCode } from "@holdfast/contracts/reasons/catalogue";
import { nodeReason } from "@holdfast/contracts/reasons/node";
import type { Observation } from "../evidence/observation.ts";

/** The host has no usable CA, so it can verify no server. */
const moreExact: Partial<Record<ReasonCode, string>> = { server_tls_untrusted: "trust_bundle_invalid" };

export function spokenCode(
  { reason, spokenAs }: { reason: ReasonCode; spokenAs?: ReasonCode | undefined },
  evidence: readonly Observation[],
): string {
  const has = (kind: Observation["kind"]) => evidence.some((one) => one.kind === kind);
  if (spokenAs === "node_agent_heartbeat_stale") {
    return has("connection") ? "connection_lost" : has("heartbeat") ? "heartbeat_stale" : spokenAs;
  }
  if (spokenAs !== undefined) return spokenAs;
  if (reason === "node_agent_unreachable" && has("standing")) return "never_heard";
  if (reason === "node_agent_auth_failed" && has("refusal")) return "auth_failed";
  const reported = evidence.flatMap(({ kind, key, value }) =>
    kind === "finding" ? (key ?? []) : kind === "diagnostic" ? value : [],
  );
  const isExact = (code: string) => nodeReason(code)?.signal === reason || moreExact[reason] === code;
  return reported.find(isExact) ?? reason;
}
