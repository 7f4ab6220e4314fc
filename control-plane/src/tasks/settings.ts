// Settings of the upkeep of tasks.

import { integer, setting } from "@holdfast/kit/settings";

/** Of ended tasks; ended terminals are kept as long. */
export const retentionSetting = setting(integer({ min: 1, max: 3_650 }), {
  env: "HOLDFAST_TASK_RETENTION_DAYS",
  default: 30,
  help: "Retention of ended tasks, with their results, and of ended terminals.",
});

export const taskWorkerSettings = {
  taskSweepIntervalSeconds: setting(integer({ min: 1, max: 3_600 }), {
    env: "HOLDFAST_TASK_SWEEP_INTERVAL_SECONDS",
    default: 60,
    help: "Interval at which abandoned tasks are expired or queued again.",
  }),
  taskRetentionDays: retentionSetting,
};
