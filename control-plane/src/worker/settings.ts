// Settings of the worker process: its own and those of all modules.

import { dispatchTokenSetting, gatewayHttpUrlSetting, logLevelSetting } from "@holdfast/service/settings";
import { systemDatabaseSettings } from "../database/settings.ts";
import { settingsOf } from "../module.ts";
import * as modules from "../modules.ts";

export const workerSettings = {
  ...systemDatabaseSettings,
  ...settingsOf(modules, "workerSettings"),
  dispatchToken: dispatchTokenSetting,
  gatewayHttpUrl: gatewayHttpUrlSetting,
  logLevel: logLevelSetting("HOLDFAST_WORKER_LOG_LEVEL"),
};
