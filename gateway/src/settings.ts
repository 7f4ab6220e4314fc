// Settings of the gateway process.

import { kinds, optional, setting } from "@holdfast/kit/settings";
import {
  agentStaleSetting,
  bindAddress,
  dispatchTokenSetting,
  drainSetting,
  executionWsUrlSetting,
  exposureSettings,
  gatewayHttpUrlSetting,
  logLevelSetting,
  logStoreSettings,
  serviceTokenSetting,
} from "@holdfast/service/settings";

const redisUrl = {
  allowed: "a URL such as redis://host:6379 or rediss://user:password@host:6380/0",
  parse: (text: string) => (/^rediss?:\/\/./.test(text) && URL.canParse(text) ? text : undefined),
};

const httpsUrl = {
  allowed: "an https:// address without path, such as https://nodes.example.com:18443",
  parse: (text: string) => {
    const origin = kinds.httpUrl.parse(text);
    return origin?.startsWith("https:") ? origin : undefined;
  },
};

export const gatewaySettings = {
  port: setting(kinds.port, {
    env: "HOLDFAST_GATEWAY_PORT",
    aliases: ["GATEWAY_PORT"],
    default: 3002,
    help: "Port for terminal connections of browsers and of the command line, and for execution agents.",
  }),
  bind: setting(bindAddress, {
    env: "HOLDFAST_GATEWAY_BIND",
    aliases: ["GATEWAY_HOST"],
    default: "127.0.0.1",
    help: "Address the gateway listens on.",
  }),
  gatewayUrl: optional(kinds.httpUrl, {
    env: "HOLDFAST_GATEWAY_PUBLIC_URL",
    help: "URL of the gateway that is published to browsers. Default: the host of HOLDFAST_PUBLIC_URL, or the address listened on, with HOLDFAST_GATEWAY_PORT.",
  }),
  nodePort: setting(kinds.port, {
    env: "HOLDFAST_NODE_TERMINAL_PORT",
    default: 18443,
    help: "Port of the gateway's node-facing listener, to which agents connect terminal streams.",
  }),
  nodeBind: setting(bindAddress, {
    env: "HOLDFAST_NODE_TERMINAL_BIND",
    default: "127.0.0.1",
    help: "Address of the gateway's node-facing listener. Set it for nodes on other machines. It always uses mutual TLS.",
  }),
  nodeUrl: optional(httpsUrl, {
    env: "HOLDFAST_NODE_TERMINAL_URL",
    aliases: ["GPUAAS_TERMINAL_API_URL"],
    help: "URL of the gateway's node-facing listener that is published to agents. Default: the machine's name or the address listened on.",
  }),
  internalPort: setting(kinds.port, {
    env: "HOLDFAST_GATEWAY_INTERNAL_PORT",
    default: 3003,
    help: "Port of the gateway's internal listener, at which workers dispatch steps.",
  }),
  internalBind: setting(bindAddress, {
    env: "HOLDFAST_GATEWAY_INTERNAL_BIND",
    default: "127.0.0.1",
    help: "Address of the gateway's internal listener. Beyond loopback it uses TLS, with HOLDFAST_TLS_CERT_FILE or else a certificate of Holdfast's own CA.",
  }),
  internalUrl: gatewayHttpUrlSetting,
  executionUrl: executionWsUrlSetting,
  agentStaleMs: agentStaleSetting,
  apiUrl: setting(httpsUrl, {
    env: "HOLDFAST_API_INTERNAL_URL",
    default: "https://127.0.0.1:3004",
    help: "URL of the api's internal listener, as seen from the gateway.",
  }),
  redisUrl: optional(redisUrl, {
    env: "HOLDFAST_REDIS_URL",
    aliases: ["REDIS_URL"],
    secret: true,
    help: "Redis in which several gateways record which of them has a terminal: the same for all of them. Without it there must be one gateway only.",
  }),
  relayUrl: optional(httpsUrl, {
    env: "HOLDFAST_GATEWAY_RELAY_URL",
    help: "URL at which other gateways reach this gateway's node-facing listener directly. Default: the machine's name or the address listened on, with HOLDFAST_NODE_TERMINAL_PORT.",
  }),
  serviceToken: serviceTokenSetting,
  dispatchToken: dispatchTokenSetting,
  drainSeconds: drainSetting,
  ...exposureSettings,
  ...logStoreSettings,
  logLevel: logLevelSetting("HOLDFAST_GATEWAY_LOG_LEVEL", ["GATEWAY_LOG_LEVEL"]),
};
