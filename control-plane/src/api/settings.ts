// Settings of the api process.

import { integer, kinds, oneOf, optional, setting } from "@holdfast/kit/settings";
import { bindAddress, drainSetting, exposureSettings, logLevelSetting } from "@holdfast/service/settings";
import { databaseSettings } from "../database/settings.ts";
import { staleAfterSetting } from "../nodes/settings.ts";
import { httpsUrl, namedAddresses, namedUrls } from "../profiles/settings.ts";
import { sealingSettings } from "../sealing/settings.ts";
import { serviceSettings } from "../services/settings.ts";
import { terminalSettings } from "../terminals/settings.ts";

const seconds = integer({ min: 60, max: 86_400 });
const probeInterval = {
  allowed: `${seconds.allowed}; 0 never asks`,
  parse: (text: string) => (text === "0" ? 0 : seconds.parse(text)),
};

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
  nodePort: setting(kinds.port, {
    env: "HOLDFAST_NODE_API_PORT",
    default: 18_442,
    help: "Port that agents connect to, with mutual TLS.",
  }),
  nodeBind: setting(bindAddress, {
    env: "HOLDFAST_NODE_API_BIND",
    default: "127.0.0.1",
    help: "Address the node-facing API listens on. For agents on other machines, set one that they can reach, such as 0.0.0.0.",
  }),
  nodeUrl: optional(httpsUrl, {
    env: "HOLDFAST_NODE_API_URL",
    help: "URL by which agents reach the node-facing API, if it is not the address listened on.",
  }),
  nodeEndpoints: setting(namedUrls, {
    env: "HOLDFAST_NODE_ENDPOINTS",
    default: {},
    defaultText: "none",
    help: "Additional addresses in the environment profile, which nodes may probe by name.",
  }),
  nodeResolve: setting(namedAddresses, {
    env: "HOLDFAST_NODE_RESOLVE",
    default: {},
    defaultText: "none",
    help: "Host names with addresses that nodes use where there is no private DNS.",
  }),
  nodeHeartbeatStaleSeconds: staleAfterSetting,
  nodeHealthProbeIntervalSeconds: setting(probeInterval, {
    env: "HOLDFAST_NODE_HEALTH_PROBE_INTERVAL_SECONDS",
    default: 900,
    help: "Interval of the health probe of each online node: kernel, memory, virtualization, GPUs, network interfaces.",
  }),
  drainSeconds: drainSetting,
  ...serviceSettings,
  ...terminalSettings,
  ...exposureSettings,
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
};
