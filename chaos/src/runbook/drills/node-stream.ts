// Between the node and the gateway: the way of a terminal's stream, and its address.

import type { Fault } from "../../faults/fault.ts";
import { terminalEgressDropped } from "../../faults/network.ts";
import { nodeTerminalDelayed } from "../../faults/relay.ts";
import { OPEN_SECONDS } from "../../lab/gateway.ts";
import type { Lab } from "../../lab/lab.ts";
import { TERMINAL_NAME, TERMINAL_PORT } from "../../lab/network.ts";
import type { Drill } from "../drill.ts";
import { cell, gatewayLines, hop, terminalOfUser } from "./cells.ts";

const common = { labName: "stream", lab: { gateway: true }, user: "terminal" } as const;

const timedOut = {
  user: {
    ...{ code: "terminal_node_stream_timeout", hop: "node_terminal_reachability" },
    next_step: /check DNS, route and firewall/,
  },
  page: { hop: "node_terminal_reachability", signal: "terminal_node_stream_timeout" },
  preflight: {
    ...{ failed_hop: "node_terminal_reachability", symptom_hop: null },
    ...{ signal: "terminal_node_stream_timeout", owner: "endpoint_profile" },
  },
} as const;

const evidence = (probe: RegExp) =>
  ({
    "M8: Helper node-side terminal probe": hop("before", "node_terminal_reachability", probe),
    "M8: gateway `node_stream_timeout`": cell(
      /^terminal_node_stream_timeout at node_terminal_reachability$/,
      async (scene) => {
        const { failure } = await terminalOfUser(scene);
        return `${failure?.code} at ${failure?.hop}`;
      },
    ),
    "M8: node endpoint URL": cell(
      /^https:\/\/term[.]holdfast[.]test:18443$/,
      ({ before }) => before.expected.node_terminal_url ?? "",
    ),
  }) as const;

const connected = {
  "M8: gateway logs internal node WebSocket for same session": cell(/a node's stream arrived/, ({ lab, after }) =>
    gatewayLines(lab, after.session_id),
  ),
};

export const streamBlocked: Drill = {
  ...common,
  name: "terminal-egress-blocked",
  title: "a firewall drops what the node sends to the terminal gateway",
  rows: [{ row: "M8", variant: "egress" }, { row: "L10" }],
  fault: terminalEgressDropped,
  expect: timedOut,
  before: evidence(/^failed from node: .*tcp_timeout/),
  after: connected,
};

export const streamUnresolved: Drill = {
  ...common,
  name: "terminal-name-removed",
  title: "the gateway's node-facing name does not resolve",
  rows: [{ row: "M8", variant: "resolve entry" }],
  fault: (lab) => ({
    what: "the name server does not know the terminal gateway",
    inject: async () => lab.names.answerTerminal(undefined),
    repair: async () => lab.names.answerTerminal(lab.network.control.address),
  }),
  expect: timedOut,
  before: evidence(/^failed from node: .*dns_failed/),
  after: connected,
};

/** On the host, as its env file has it. */
function configured(lab: Lab, address: string): Fault {
  const { node } = lab;
  const restart = async (env: Record<string, string>) => {
    await node.agent().stop();
    node.startAgent({ env });
    await node.agent().line(({ msg }) => msg === "heartbeat accepted", 0);
  };
  return {
    what: `the agent is restarted with the gateway at ${address}`,
    inject: () => restart({ GPUAAS_TERMINAL_API_URL: address }),
    repair: () => restart({}),
  };
}

const drifted = {
  user: { code: "terminal_env_profile_drift", hop: "node_terminal_reachability", next_step: /restart the agent/ },
  // The server compares addresses by itself: that is no request with an id.
  page: { hop: "node_runtime_api_reachability", signal: "endpoint_profile_drift", id: false },
  preflight: {
    ...{ failed_hop: "node_terminal_reachability", symptom_hop: null },
    ...{ signal: "terminal_env_profile_drift", owner: "endpoint_profile" },
  },
} as const;

export const wrongPort: Drill = {
  ...common,
  name: "terminal-wrong-port",
  title: "GPUAAS_TERMINAL_API_URL on the host names the wrong port",
  rows: [{ row: "L11", variant: "port" }],
  fault: (lab) => configured(lab, `https://${TERMINAL_NAME}:18999`),
  expect: drifted,
};

export const wrongHost: Drill = {
  ...common,
  name: "terminal-wrong-host",
  title: "GPUAAS_TERMINAL_API_URL on the host names the wrong host",
  rows: [{ row: "L11", variant: "host" }],
  fault: (lab) => configured(lab, `https://${lab.node.gateway}:${TERMINAL_PORT}`),
  expect: drifted,
};

/** Longer than the gateway waits. */
export const streamDelayed: Drill = {
  ...common,
  labName: "shell",
  name: "terminal-stream-delayed",
  title: "the node's stream takes longer than the gateway waits",
  rows: [{ row: "L15" }],
  fault: (lab) => nodeTerminalDelayed(lab, (OPEN_SECONDS + 8) * 1000),
  expect: timedOut,
  before: {
    "the user's client shows a structured failure": cell(
      /^terminal_node_stream_timeout: The node took the task/,
      ({ user }) => `${user.code}: ${user.message}`,
    ),
  },
};
