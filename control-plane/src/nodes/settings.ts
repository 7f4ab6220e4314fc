// Settings about nodes.

import { integer, setting } from "@holdfast/kit/settings";

const staleAfterSetting = setting(integer({ min: 5, max: 86_400 }), {
  env: "HOLDFAST_NODE_HEARTBEAT_STALE_SECONDS",
  default: 120,
  help: "After how many seconds without a heartbeat a node is shown as stale.",
});

const seconds = integer({ min: 60, max: 86_400 });
const probeInterval = {
  allowed: `${seconds.allowed}; 0 never asks`,
  parse: (text: string) => (text === "0" ? 0 : seconds.parse(text)),
};

export const nodeApiSettings = {
  nodeHeartbeatStaleSeconds: staleAfterSetting,
  nodeHealthProbeIntervalSeconds: setting(probeInterval, {
    env: "HOLDFAST_NODE_HEALTH_PROBE_INTERVAL_SECONDS",
    default: 900,
    help: "How often each node that is online is asked how its host is: kernel, memory, virtualization, GPUs, links.",
  }),
};

export const nodeWorkerSettings = { nodeHeartbeatStaleSeconds: staleAfterSetting };
