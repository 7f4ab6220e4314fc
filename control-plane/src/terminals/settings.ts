// Settings of terminals: the gateway's address for nodes, time limits and maximum numbers.

import { PROMISED_SECONDS } from "@holdfast/contracts/terminal/deadlines";
import { integer, optional, setting } from "@holdfast/kit/settings";
import { httpsUrl } from "../profiles/settings.ts";

export const terminalSettings = {
  nodeTerminalUrl: optional(httpsUrl, {
    env: "HOLDFAST_NODE_TERMINAL_URL",
    aliases: ["GPUAAS_TERMINAL_API_URL"],
    help: "On the api: the URL of the node-facing terminal listener that is published to nodes, instead of the gateway's own.",
  }),
  terminalOpenSeconds: setting(integer({ min: PROMISED_SECONDS.least, max: PROMISED_SECONDS.most }), {
    env: "HOLDFAST_TERMINAL_OPEN_SECONDS",
    default: PROMISED_SECONDS.default,
    help: "Number of seconds within which a terminal becomes ready or fails with a reason.",
  }),
  terminalIdleSeconds: setting(integer({ min: 10, max: 604_800 }), {
    env: "HOLDFAST_TERMINAL_IDLE_SECONDS",
    default: 3_600,
    help: "Number of seconds without input or output after which a terminal is closed.",
  }),
  terminalDetachedSeconds: setting(integer({ min: 1, max: 86_400 }), {
    env: "HOLDFAST_TERMINAL_DETACHED_SECONDS",
    default: 600,
    help: "Number of seconds for which a detached shell is kept, so that a client can attach again.",
  }),
  terminalLongestSeconds: setting(integer({ min: 60, max: 2_592_000 }), {
    env: "HOLDFAST_TERMINAL_LONGEST_SECONDS",
    default: 86_400,
    help: "Maximum lifetime of a terminal, in seconds.",
  }),
  terminalsPerUser: setting(integer({ min: 1, max: 10_000 }), {
    env: "HOLDFAST_TERMINALS_PER_USER",
    default: 20,
    help: "Maximum number of open terminals per person or token.",
  }),
  terminalsPerNode: setting(integer({ min: 1, max: 10_000 }), {
    env: "HOLDFAST_TERMINALS_PER_NODE",
    default: 200,
    help: "Maximum number of open terminals per node.",
  }),
};
