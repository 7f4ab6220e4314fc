// What only the control plane can notice: that a node does not report. It says nothing about the cause.

import type { NodeReason } from "../vocabulary.ts";

/** Whatever breaks the link is the better explanation of a missing heartbeat. */
const causes = [
  ...["agent_down", "node_agent_process_down", "node_agent_binary_invalid", "node_agent_api_unreachable"],
  ...["control_plane_unreachable", "server_tls_untrusted", "edge_rate_limited", "node_agent_auth_failed"],
  ...["cert_expired", "recovery_enrollment_blocked", "identity_revoked_or_fenced", "endpoint_profile_drift"],
  ...[
    "clock_skew",
    "disk_full",
    "cloned_identity_detected",
    "cert_untrusted_by_ingress",
    "recovery_token_missing",
  ],
] as const;

export const silenceReasons = {
  heartbeat_stale: {
    title: "No heartbeat",
    at: "heartbeat",
    signal: "node_agent_heartbeat_stale",
    message: "The node's heartbeats stopped.",
    nextStep:
      "Check that host and agent are running. `holdfast agent diagnose` on the host shows why it does not report.",
    class: "silence",
    owner: "node_runtime",
    severity: "P2",
    userState: "temporary",
    nextAction: "restart_agent",
    dependsOn: causes,
  },
  connection_lost: {
    title: "Disconnected",
    at: "heartbeat",
    signal: "node_agent_heartbeat_stale",
    message: "The agent's connection ended, and it did not connect again.",
    nextStep:
      "Check that host, network and agent are running. `holdfast agent diagnose` on the host shows why it does not connect.",
    class: "silence",
    owner: "node_runtime",
    severity: "P2",
    userState: "temporary",
    nextAction: "restart_agent",
    dependsOn: causes,
  },
  never_heard: {
    title: "No heartbeat yet",
    at: "heartbeat",
    signal: "node_agent_heartbeat_stale",
    message: "The node was enrolled and has never sent a heartbeat.",
    nextStep:
      "Start the agent on the host: `holdfast agent run`. `holdfast agent diagnose` there shows what is wrong.",
    class: "silence",
    owner: "node_runtime",
    severity: "P2",
    userState: "temporary",
    nextAction: "restart_agent",
    dependsOn: causes,
  },
  heartbeat_in_future: {
    title: "Heartbeat time in the future",
    at: "heartbeat",
    signal: "clock_skew",
    message:
      "The time of the last heartbeat is in the future: a clock of the control plane was wrong. Whether the node is online is unknown.",
    nextStep:
      "Check the time on the hosts of the database and the api: `timedatectl`. A running agent reports again within 60 seconds. If none does, check host and agent.",
    class: "silence",
    owner: "control_plane",
    severity: "P1",
    userState: "temporary",
    nextAction: "fix_control_plane",
    dependsOn: [],
  },
} as const satisfies Record<string, NodeReason>;
