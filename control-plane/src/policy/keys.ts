// The keys of the policy. Each is a setting that can also be changed while the platform runs: what it means, what is allowed and
// its default are those of the setting. `isWeaker`: whether a change needs a reason.

import type { PolicyKey } from "@holdfast/contracts/endpoints/policy";
import type { Setting } from "@holdfast/kit/settings";
import { nodeExecutionSettings } from "../agents/settings.ts";
import { auditSettings } from "../audit/settings.ts";
import type { Tx } from "../database/connect.ts";
import { policySettings } from "../drift/settings.ts";
import { nodeApiSettings } from "../nodes/settings.ts";
import { recoverySettings } from "../recovery/settings.ts";
import { taskWorkerSettings } from "../tasks/settings.ts";

/** Both processes read all of them: the api shows the defaults. */
export const allPolicySettings = {
  ...auditSettings,
  ...nodeExecutionSettings,
  nodeAutomaticRecovery: recoverySettings.nodeAutomaticRecovery,
  nodeDiskPressurePercent: policySettings.nodeDiskPressurePercent,
  nodeHealthProbeIntervalSeconds: nodeApiSettings.nodeHealthProbeIntervalSeconds,
  nodeHeartbeatStaleSeconds: nodeApiSettings.nodeHeartbeatStaleSeconds,
  nodeQuarantineClones: nodeApiSettings.nodeQuarantineClones,
  nodeRecoveryTokenMaxAgeSeconds: recoverySettings.nodeRecoveryTokenMaxAgeSeconds,
  taskSweepIntervalSeconds: taskWorkerSettings.taskSweepIntervalSeconds,
};
export type PolicySettingName = keyof typeof allPolicySettings;

type Entry = {
  setting: PolicySettingName;
  isWeaker(from: unknown, to: unknown): boolean;
  /** What has to change with it, in the same transaction. */
  apply?(tx: Tx, value: unknown): Promise<void>;
};

/** Later, or less often. */
const whenHigher = (from: unknown, to: unknown) => Number(to) > Number(from);
/** 0 is never. */
const whenRarer = (from: unknown, to: unknown) => whenHigher(Number(from) || Infinity, Number(to) || Infinity);
const whenBecomes = (value: string) => (from: unknown, to: unknown) => to === value && from !== value;

const entries: Record<PolicyKey, Entry> = {
  "audit.dedupe_window_seconds": { setting: "auditDedupeWindowSeconds", isWeaker: whenHigher },
  // A node that gets an identity by itself is not seen by an operator first.
  "node.automatic_recovery": { setting: "nodeAutomaticRecovery", isWeaker: whenBecomes("on") },
  "node.disk_pressure_percent": { setting: "nodeDiskPressurePercent", isWeaker: whenHigher },
  // A node that its operator enrolled for tasks then runs scripts of workflows, too.
  "node.executions": { setting: "nodeExecutions", isWeaker: whenBecomes("on") },
  "node.health_probe_interval_seconds": { setting: "nodeHealthProbeIntervalSeconds", isWeaker: whenRarer },
  "node.heartbeat_stale_after_seconds": { setting: "nodeHeartbeatStaleSeconds", isWeaker: whenHigher },
  "node.quarantine_clones": { setting: "nodeQuarantineClones", isWeaker: whenBecomes("off") },
  "node.recovery_token_max_age_seconds": {
    ...{ setting: "nodeRecoveryTokenMaxAgeSeconds", isWeaker: whenHigher },
    apply: async (tx, value) => (await import("../recovery/upkeep.ts")).shortenTokens(tx, Number(value)),
  },
  "node.task_stale_sweep_interval_seconds": { setting: "taskSweepIntervalSeconds", isWeaker: whenHigher },
};

export type PolicyEntry = Entry & { key: PolicyKey; declared: Setting };

export const policyEntries: readonly PolicyEntry[] = (Object.keys(entries) as PolicyKey[]).map((key) => ({
  ...{ key, ...entries[key] },
  declared: allPolicySettings[entries[key].setting] as Setting,
}));

export function policyEntry(key: PolicyKey): PolicyEntry {
  const found = policyEntries.find((one) => one.key === key);
  if (!found) throw new Error(`no policy is named ${key}`);
  return found;
}
