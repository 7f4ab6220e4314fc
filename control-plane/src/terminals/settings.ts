// Settings of terminals: where nodes find the gateway, and how long and how many.

import { PROMISED_SECONDS } from "@holdfast/contracts/terminal-deadlines";
import { integer, optional, setting } from "@holdfast/kit/settings";
import { httpsUrl } from "../profiles/settings.ts";

export const terminalSettings = {
  nodeTerminalUrl: optional(httpsUrl, {
    env: "HOLDFAST_NODE_TERMINAL_URL",
    aliases: ["GPUAAS_TERMINAL_API_URL"],
    help: "At the api: the address of the node-facing terminal listener that nodes are told, instead of what the gateway says.",
  }),
  terminalOpenSeconds: setting(integer({ min: PROMISED_SECONDS.least, max: PROMISED_SECONDS.most }), {
    env: "HOLDFAST_TERMINAL_OPEN_SECONDS",
    default: PROMISED_SECONDS.default,
    help: "Within so many seconds a terminal is ready, or says why it is not.",
  }),
  terminalIdleSeconds: setting(integer({ min: 10, max: 604_800 }), {
    env: "HOLDFAST_TERMINAL_IDLE_SECONDS",
    default: 3_600,
    help: "After how many seconds without a key pressed or a byte shown a terminal is closed.",
  }),
  terminalDetachedSeconds: setting(integer({ min: 1, max: 86_400 }), {
    env: "HOLDFAST_TERMINAL_DETACHED_SECONDS",
    default: 600,
    help: "How many seconds a shell lives on without anybody connected to it, so that a reload finds it.",
  }),
  terminalLongestSeconds: setting(integer({ min: 60, max: 2_592_000 }), {
    env: "HOLDFAST_TERMINAL_LONGEST_SECONDS",
    default: 86_400,
    help: "How many seconds a terminal may be open at most.",
  }),
  terminalsPerUser: setting(integer({ min: 1, max: 10_000 }), {
    env: "HOLDFAST_TERMINALS_PER_USER",
    default: 20,
    help: "How many terminals one person or token may have open at a time.",
  }),
  terminalsPerNode: setting(integer({ min: 1, max: 10_000 }), {
    env: "HOLDFAST_TERMINALS_PER_NODE",
    default: 200,
    help: "How many terminals may be open on one node at a time.",
  }),
};
