// Settings of the upkeep of tasks.

import { integer, setting } from "@holdfast/kit/settings";

/** Of ended tasks; ended terminals are kept as long. */
export const retentionSetting = setting(integer({ min: 1, max: 3_650 }), {
  env: "HOLDFAST_TASK_RETENTION_DAYS",
  default: 30,
  help: "How long tasks and terminals that have ended are kept, tasks with their results.",
});

export const taskWorkerSettings = {
  taskSweepIntervalSeconds: setting(integer({ min: 1, max: 3_600 }), {
    env: "HOLDFAST_TASK_SWEEP_INTERVAL_SECONDS",
    default: 60,
    help: "How often tasks are looked for that nobody works on any more, to be expired or queued again.",
  }),
  taskRetentionDays: retentionSetting,
};
