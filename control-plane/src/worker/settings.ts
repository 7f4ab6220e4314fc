// Settings of the worker process.

import { integer, setting } from "@holdfast/kit/settings";
import { logLevelSetting } from "@holdfast/service/settings";
import { databaseSettings } from "../database/settings.ts";

export const workerSettings = {
  ...databaseSettings,
  sweepIntervalSeconds: setting(integer({ min: 1, max: 86_400 }), {
    env: "HOLDFAST_SWEEP_INTERVAL_SECONDS",
    default: 60,
    help: "How often expired sessions, links, idempotency keys and rate-limit windows are removed.",
  }),
  logLevel: logLevelSetting("HOLDFAST_WORKER_LOG_LEVEL"),
};
