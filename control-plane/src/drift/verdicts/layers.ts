// Management, workload and user access, which never become one bit: that a node cannot be managed says nothing about what
// runs on it. A layer works only by fresh evidence of it.

import type { Layers } from "@holdfast/contracts/endpoints/drift";
import type { NodeAgentStatus } from "@holdfast/contracts/endpoints/nodes";
import type { Cause, Verdict } from "../classify/classify.ts";
import { freshForMs, type Kind, type Observation } from "../evidence/observation.ts";
import { isChecking } from "../recovery/gate.ts";

export function layersOf(verdict: Verdict, evidence: readonly Observation[], now: number): Layers {
  const impaired = (...layers: string[]) => verdict.causes.some(({ layer }) => layers.includes(layer));
  const seen = (kind: Kind, value: string) => {
    const newest = evidence
      .filter((one) => one.kind === kind)
      .reduce<Observation | undefined>(
        (last, one) => (last && last.observedAt > one.observedAt ? last : one),
        undefined,
      );
    const limit = freshForMs[kind] ?? Number.POSITIVE_INFINITY;
    return newest?.value === value && newest.observedAt + limit > now ? "working" : "unknown";
  };
  return {
    management: isChecking(verdict.causes)
      ? "recovering"
      : impaired("management", "platform")
        ? "impaired"
        : verdict.reporting
          ? "working"
          : "unknown",
    workload: impaired("workload") ? "impaired" : seen("app_status", "running"),
    access: impaired("access") ? "impaired" : seen("terminal", "ready"),
  };
}

/** What a signal says about the agent; the others say nothing about it. */
const statusBySignal: Readonly<Record<string, NodeAgentStatus>> = {
  node_agent_auth_failed: "auth_failed",
  node_agent_api_unreachable: "api_unreachable",
  node_agent_api_tls_failed: "api_unreachable",
  node_task_result_post_failed: "task_result_failed",
  node_agent_process_down: "stale",
  node_agent_heartbeat_stale: "stale",
};

/** By the worst cause that concerns the agent. */
export function agentStatusOf(
  causes: readonly Pick<Cause, "signal" | "reason">[],
  { reporting, heard }: { reporting: boolean; heard: boolean },
): NodeAgentStatus {
  for (const { signal, reason } of causes) {
    const status = reason === "node_agent_unreachable" ? "unknown" : signal && statusBySignal[signal];
    // One that reports is authenticated, whatever an operator decided about it.
    if (status && !(reporting && status === "auth_failed")) return status;
  }
  return reporting ? "healthy" : heard ? "stale" : "unknown";
}
