// Settings of the api process: its own, its listeners' and those of all modules.

import { integer, kinds, oneOf, optional, setting } from "@holdfast/kit/settings";
import {
  bindAddress,
  drainSetting,
  exposureSettings,
  logLevelSetting,
  logStoreSettings,
} from "@holdfast/service/settings";
import { databaseSettings } from "../database/settings.ts";
import { internalApiSettings } from "../internal-api/settings.ts";
import { sealingSettings } from "../mechanisms/sealing/settings.ts";
import { settingsOf } from "../module.ts";
import * as modules from "../modules.ts";
import { nodeListenerSettings } from "../node-api/settings.ts";

export const apiSettings = {
  port: setting(kinds.port, {
    env: "HOLDFAST_API_PORT",
    default: 3001,
    help: "Port of the web app and the public API.",
  }),
  bind: setting(bindAddress, {
    env: "HOLDFAST_API_BIND",
    default: "127.0.0.1",
    help: "Address the api listens on.",
  }),
  drainSeconds: drainSetting,
  ...nodeListenerSettings,
  ...internalApiSettings,
  ...exposureSettings,
  ...logStoreSettings,
  ...databaseSettings,
  ...sealingSettings,
  databasePoolSize: setting(integer({ min: 2, max: 200 }), {
    env: "HOLDFAST_DATABASE_POOL_SIZE",
    default: 10,
    help: "Maximum number of connections of one process per database role.",
  }),
  migrateOnStart: setting(oneOf("yes", "no"), {
    env: "HOLDFAST_MIGRATE_ON_START",
    default: "yes",
    help: "Whether the api applies migrations at start when it has the owner's login. With `no`, run `holdfast migrate` first.",
  }),
  operatorTokenSha256: optional(
    {
      allowed: "64 hexadecimal digits",
      parse: (text) => (/^[0-9a-f]{64}$/.test(text) ? text : undefined),
    },
    {
      env: "HOLDFAST_OPERATOR_TOKEN_SHA256",
      help: "SHA-256 of the local operator token, which `holdfast up` stores in a file that only its user can read.",
    },
  ),
  bodyLimit: setting(integer({ min: 1024, max: 64 * 1024 * 1024 }), {
    env: "HOLDFAST_BODY_LIMIT_BYTES",
    default: 256 * 1024,
    help: "Maximum size of a request body of the public API, in bytes.",
  }),
  logLevel: logLevelSetting("HOLDFAST_API_LOG_LEVEL"),
  ...settingsOf(modules, "apiSettings"),
};
