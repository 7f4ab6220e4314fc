// Between the node and the gateway: the way of a terminal's stream, and its address.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Fault } from "../../faults/fault.ts";
import { clockOff, movableClock } from "../../faults/host.ts";
import { terminalEgressDropped } from "../../faults/network.ts";
import { nodeTerminalDelayed } from "../../faults/relay.ts";
import { OPEN_SECONDS } from "../../lab/gateway.ts";
import type { Lab } from "../../lab/lab.ts";
import { TERMINAL_NAME, TERMINAL_PORT } from "../../lab/network.ts";
import type { Line } from "../../lab/program.ts";
import type { Drill } from "../drill.ts";
import { cell, gatewayLines, gatewayOf, hop, sameId, sameIdExpected, terminalOfUser } from "./cells.ts";

/** Its gateway has a clock of its own. */
const common = { labName: "stream", lab: { gateway: true, gatewayEnv: movableClock }, user: "terminal" } as const;

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
  page: { hop: "node_terminal_reachability", signal: "terminal_env_profile_drift" },
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

/** Of the node, as its agent presents it. */
function certificateOf({ node }: Lab): string {
  const { serialNumber, subjectAltName } = new X509Certificate(readFileSync(join(node.stateDir, "identity.pem")));
  return `serial ${serialNumber.toLowerCase()}, ${subjectAltName}`;
}

/** To the gateway, every certificate of a node is one of the day before. The API goes on to accept it. */
export const certificateStale: Drill = {
  ...common,
  name: "terminal-certificate-stale",
  title: "the gateway rejects the node's certificate, because by its clock it has expired",
  rows: [{ row: "M9", variant: "stale" }, { row: "L12" }],
  fault: ({ directory }) => clockOff(directory, "+25h"),
  expect: {
    user: {
      ...{ code: "terminal_node_stream_mtls_failed", hop: "gateway_node_stream" },
      next_step: /Check the state of its certificate/,
    },
    page: { hop: "gateway_node_stream", signal: "terminal_node_stream_mtls_failed" },
    preflight: {
      ...{ failed_hop: "gateway_node_stream", symptom_hop: null },
      ...{ signal: "terminal_node_stream_mtls_failed", owner: "pki" },
    },
  },
  before: {
    "M9: Gateway TLS/client-cert error": cell(/refused a node's stream cert_expired/, async (scene) =>
      gatewayLines(scene.lab, (await terminalOfUser(scene)).id),
    ),
    "M9: cert serial/SAN": cell(
      /^serial ([0-9a-f]+), URI:holdfast:\/\/node\/[0-9a-f-]{36}; refused: \1$/,
      async ({ lab, before }) => {
        const isOfIt = ({ msg, session_id }: Line) =>
          msg === "refused a node's stream" && session_id === before.session_id;
        const refused = gatewayOf(lab).program.lines().find(isOfIt);
        return `${certificateOf(lab)}; refused: ${refused?.["serial"]}`;
      },
    ),
    "M9: correlation ID": cell(sameIdExpected, sameId),
  },
  after: {
    "M9: internal stream connects": cell(/a node's stream arrived/, ({ lab, after }) =>
      gatewayLines(lab, after.session_id),
    ),
  },
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
