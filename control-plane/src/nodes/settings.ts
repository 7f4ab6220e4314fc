// Settings about nodes.

import { integer, oneOf, setting } from "@holdfast/kit/settings";

const staleAfterSetting = setting(integer({ min: 5, max: 86_400 }), {
  env: "HOLDFAST_NODE_HEARTBEAT_STALE_SECONDS",
  default: 120,
  help: "Number of seconds without a heartbeat after which a node is offline.",
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
    help: "Interval of the health probe of each online node: kernel, memory, virtualization, GPUs, network interfaces.",
  }),
  allowUnknownHosts: setting(oneOf("true", "false"), {
    env: "HOLDFAST_ALLOW_UNKNOWN_HOST_REGISTRATION",
    aliases: ["ALLOW_UNKNOWN_HOST_REGISTRATION"],
    default: "false",
    help: "For development only. `true`: a VM host without a record registers with the bootstrap token of any host, under its NODE_AGENT_HOST_ID.",
  }),
  nodeQuarantineClones: setting(oneOf("on", "off"), {
    env: "HOLDFAST_NODE_QUARANTINE_CLONES",
    default: "on",
    help: "Whether a node is quarantined when two machines have proved that both use its identity; `off` only reports it.",
  }),
};

export const nodeWorkerSettings = { nodeHeartbeatStaleSeconds: staleAfterSetting };
