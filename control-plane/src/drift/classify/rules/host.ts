// The host, and the agent's files on it.

import type { Rule } from "../rule.ts";

export const hostRules: readonly Rule[] = [
  {
    reason: "clock_skew",
    signal: null,
    layer: "management",
    when: { clock: "skewed" },
    confidence: "high",
    changedBy: "a heartbeat whose time agrees with the server's",
  },
  {
    reason: "disk_full",
    signal: "disk_full",
    layer: "management",
    when: { root_filesystem: "full" },
    confidence: "high",
    alsoInvolves: ["observability"],
    changedBy: "a measurement that shows free space",
  },
  {
    reason: "node_observability_disk_pressure",
    signal: "node_observability_disk_pressure",
    layer: "management",
    when: { root_filesystem: "pressure" },
    confidence: "high",
    alsoInvolves: ["observability"],
    changedBy: "a measurement that shows more free space",
  },
  {
    reason: "node_agent_binary_invalid",
    signal: "node_agent_binary_invalid",
    layer: "management",
    when: { host_exec: ["format_error", "missing"] },
    unless: { heartbeat: "current" },
    confidence: "high",
    budget: { detect: 300 },
    changedBy: "an agent binary that starts on this host",
  },
  {
    reason: "agent_version_drift",
    signal: null,
    layer: "management",
    when: { agent_build: "older_than_required", task_verification: "failed" },
    confidence: "high",
    answer: { userState: "temporary" },
    changedBy: "a heartbeat of a supported agent version",
  },
  {
    reason: "agent_version_drift",
    signal: null,
    layer: "management",
    when: { agent_build: "older_than_required" },
    confidence: "high",
    changedBy: "a heartbeat of a supported agent version",
  },
];
