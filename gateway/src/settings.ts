// Settings of the gateway process.

import { kinds, optional, setting } from "@holdfast/kit/settings";
import { bindAddress, exposureSettings, logLevelSetting, serviceTokenSetting } from "@holdfast/service/settings";

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
    help: "Port of browser terminals and execution sockets.",
  }),
  bind: setting(bindAddress, {
    env: "HOLDFAST_GATEWAY_BIND",
    aliases: ["GATEWAY_HOST"],
    default: "127.0.0.1",
    help: "Address the gateway listens on.",
  }),
  gatewayUrl: optional(kinds.httpUrl, {
    env: "HOLDFAST_GATEWAY_PUBLIC_URL",
    help: "The address of the gateway that browsers are told. Left out: the host of HOLDFAST_PUBLIC_URL, or the address listened on, with HOLDFAST_GATEWAY_PORT.",
  }),
  nodePort: setting(kinds.port, {
    env: "HOLDFAST_NODE_TERMINAL_PORT",
    default: 18443,
    help: "Port of the gateway's node-facing listener, which agents bring terminals to.",
  }),
  nodeBind: setting(bindAddress, {
    env: "HOLDFAST_NODE_TERMINAL_BIND",
    default: "127.0.0.1",
    help: "Address of the gateway's node-facing listener. Set it to let other machines bring terminals: it always speaks mutual TLS.",
  }),
  nodeUrl: optional(httpsUrl, {
    env: "HOLDFAST_NODE_TERMINAL_URL",
    aliases: ["GPUAAS_TERMINAL_API_URL"],
    help: "The address of the gateway's node-facing listener that agents are told. Left out: the machine's name or the address listened on.",
  }),
  apiUrl: setting(httpsUrl, {
    env: "HOLDFAST_API_INTERNAL_URL",
    default: "https://127.0.0.1:3004",
    help: "Where the gateway reaches the api's internal listener.",
  }),
  serviceToken: serviceTokenSetting,
  ...exposureSettings,
  logLevel: logLevelSetting("HOLDFAST_GATEWAY_LOG_LEVEL", ["GATEWAY_LOG_LEVEL"]),
};
