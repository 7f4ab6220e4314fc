// What dashboards and alarms call it where no reason has the same name. A signal stands for one or more reasons, and has
// the words of the most general one. Drift classification returns some of these codes as reasons.

import { nodeReasons } from "./node.ts";
import type { ReasonFacts } from "./vocabulary.ts";

/** The causes are named per signal, because the failure matrix does. */
function like<const Changes extends Partial<ReasonFacts> & Pick<ReasonFacts, "dependsOn">>(
  code: keyof typeof nodeReasons,
  changes: Changes,
): ReasonFacts {
  const { title, message, nextStep, class: kind, owner, severity, userState, nextAction } = nodeReasons[code];
  return { title, message, nextStep, class: kind, owner, severity, userState, nextAction, ...changes };
}

const causesOfRejection = ["endpoint_profile_drift", "clock_skew", "disk_full", "cloned_identity_detected"];
const exactRejections = [
  "cert_expired",
  "recovery_token_missing",
  "cert_untrusted_by_ingress",
  "identity_revoked_or_fenced",
];

export const signalReasons = {
  node_agent_heartbeat_stale: like("heartbeat_stale", { dependsOn: nodeReasons.heartbeat_stale.dependsOn }),
  node_agent_process_down: like("agent_down", { dependsOn: ["disk_full", "node_agent_binary_invalid"] }),
  node_agent_binary_invalid: like("agent_version_drift", {
    title: "Agent binary invalid",
    userState: "temporary",
    dependsOn: [],
  }),
  node_agent_api_unreachable: like("api_unreachable", {
    dependsOn: ["control_plane_unreachable", "endpoint_profile_drift"],
  }),
  node_agent_link_slow: like("link_slow", { dependsOn: [] }),
  node_agent_api_tls_failed: like("server_tls_untrusted", { dependsOn: ["endpoint_profile_drift", "clock_skew"] }),
  node_agent_auth_failed: like("auth_failed", {
    dependsOn: [...causesOfRejection, ...exactRejections],
  }),
  identity_revoked_or_fenced: like("node_quarantined", {
    title: "Node quarantined, revoked or retired",
    message: "An operator quarantined, revoked or retired this node.",
    dependsOn: ["cloned_identity_detected"],
  }),
  node_identity_update_failed: like("identity_update_failed", { dependsOn: [] }),
  node_agent_trust_update_refused: like("trust_update_refused", { dependsOn: [] }),
  node_agent_certificate_header_refused: like("certificate_header_refused", { dependsOn: [] }),
  node_task_claim_failed: like("task_refused", {
    title: "Tasks not taken",
    message: "The agent polls, but cannot take tasks.",
    dependsOn: ["agent_version_drift", "disk_full"],
  }),
  node_task_result_post_failed: like("task_result_failed", {
    owner: "api",
    dependsOn: ["control_plane_unreachable", "node_agent_api_unreachable"],
  }),
} satisfies Record<string, ReasonFacts>;
