// Settings of the gateway process.

import { kinds, setting } from "@holdfast/kit/settings";
import { bindAddress, exposureSettings, logLevelSetting } from "@holdfast/service/settings";

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
  ...exposureSettings,
  logLevel: logLevelSetting("HOLDFAST_GATEWAY_LOG_LEVEL", ["GATEWAY_LOG_LEVEL"]),
};
