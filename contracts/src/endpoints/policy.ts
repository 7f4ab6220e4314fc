// The policy of the platform: limits that its operator changes while it runs.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Text, Time } from "../fields.ts";

export const policyKeys = [
  "audit.dedupe_window_seconds",
  "node.automatic_recovery",
  "node.disk_pressure_percent",
  "node.executions",
  "node.health_probe_interval_seconds",
  "node.heartbeat_stale_after_seconds",
  "node.quarantine_clones",
  "node.recovery_token_max_age_seconds",
  "node.task_stale_sweep_interval_seconds",
] as const;
export type PolicyKey = (typeof policyKeys)[number];

export const PolicyValue = z.strictObject({
  key: z.enum(policyKeys),
  value: z.string().describe("What applies now: `120`, `off`."),
  default_value: z.string().describe("What applies unless it is changed here: the setting of the api."),
  setting: z.string().describe("The environment variable of the default."),
  allowed: z.string(),
  help: z.string(),
  changed_at: Time.nullable().describe("Null: the default applies."),
  reason: z.string().nullable(),
});
export type PolicyValue = z.infer<typeof PolicyValue>;

export const listPolicy = endpoint({
  name: "listPolicy",
  noun: "platform",
  method: "GET",
  path: "/v1/platform/policy",
  summary: "List the values of the policy",
  access: "operator",
  answer: z.strictObject({ items: z.array(PolicyValue) }),
});

export const changePolicy = endpoint({
  name: "changePolicy",
  noun: "platform",
  method: "PATCH",
  path: "/v1/platform/policy",
  summary: "Change a value of the policy, for all processes, without a restart",
  description:
    "Processes use it within two seconds. A change that weakens the policy (a longer limit, or a protection turned off) needs a `reason`, " +
    "which is recorded in the audit.",
  access: "operator",
  action: "policy.change",
  body: z.strictObject({
    key: z.enum(policyKeys),
    value: Text.min(1).max(20).nullable().describe("Null: back to the default."),
    reason: Text.min(1).max(500).optional().describe("Why. Required if the new value is weaker."),
  }),
  answer: PolicyValue,
  errors: ["policy_reason_missing"],
});
