// Apps on a node. Only a finished check can say that an app has failed.

import type { Rule } from "../rule.ts";

export const appRules: readonly Rule[] = [
  {
    reason: "app_runtime_failed",
    signal: null,
    layer: "workload",
    when: { status_probe: "completed", runtime_state: "stopped" },
    confidence: "high",
    changedBy: "a check that finds the app running",
  },
  {
    reason: "app_route_unhealthy",
    signal: null,
    layer: "access",
    when: { endpoint_probe: "failed_past_threshold" },
    confidence: "high",
    alsoInvolves: ["app_runtime"],
    changedBy: "a request to the app's address that succeeds",
  },
  {
    reason: "app_observation_stale",
    signal: null,
    layer: "workload",
    when: { status_probe: "expired" },
    confidence: "high",
    budget: { detect: 300, repair: "automatic" },
    changedBy: "a check of the app that finishes",
  },
  {
    reason: "app_credential_failed",
    signal: null,
    layer: "workload",
    when: { credential_operation: "failed_repeatedly" },
    confidence: "high",
    alsoInvolves: ["app_runtime"],
    changedBy: "a use of the credential that succeeds",
  },
];
