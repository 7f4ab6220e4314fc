// Settings of the worker process: its own and those of all modules.

import { logLevelSetting, logStoreSettings } from "@holdfast/service/settings";
import { systemDatabaseSettings } from "../database/settings.ts";
import { settingsOf } from "../module.ts";
import * as modules from "../modules.ts";

export const workerSettings = {
  ...systemDatabaseSettings,
  ...settingsOf(modules, "workerSettings"),
  ...logStoreSettings,
  logLevel: logLevelSetting("HOLDFAST_WORKER_LOG_LEVEL"),
};
