// Settings of the worker process.

import { integer, setting } from "@holdfast/kit/settings";
import { logLevelSetting } from "@holdfast/service/settings";
import { systemDatabaseSettings } from "../database/settings.ts";
import { staleAfterSetting } from "../nodes/settings.ts";

export const workerSettings = {
  ...systemDatabaseSettings,
  sweepIntervalSeconds: setting(integer({ min: 1, max: 86_400 }), {
    env: "HOLDFAST_SWEEP_INTERVAL_SECONDS",
    default: 60,
    help: "Interval at which expired sessions, links, idempotency keys and rate-limit windows are removed.",
  }),
  taskSweepIntervalSeconds: setting(integer({ min: 1, max: 3_600 }), {
    env: "HOLDFAST_TASK_SWEEP_INTERVAL_SECONDS",
    default: 60,
    help: "Interval at which abandoned tasks are expired or queued again.",
  }),
  taskRetentionDays: setting(integer({ min: 1, max: 3_650 }), {
    env: "HOLDFAST_TASK_RETENTION_DAYS",
    default: 30,
    help: "Retention of ended tasks, with their results, and of ended terminals.",
  }),
  nodeHeartbeatStaleSeconds: staleAfterSetting,
  logLevel: logLevelSetting("HOLDFAST_WORKER_LOG_LEVEL"),
};
