// Between the node and the gateway: the way of a terminal's stream, and its address.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Fault } from "../../faults/fault.ts";
import { agentRestarted, clockOff, movableClock } from "../../faults/host.ts";
import { otherCaForTerminals, otherIdentity } from "../../faults/identity.ts";
import { terminalEgressDropped } from "../../faults/network.ts";
import { nodeTerminalDelayed } from "../../faults/relay.ts";
import { OPEN_SECONDS } from "../../lab/gateway.ts";
import type { Lab } from "../../lab/lab.ts";
import { TERMINAL_NAME, TERMINAL_PORT } from "../../lab/network.ts";
import type { Line } from "../../lab/program.ts";
import type { Drill, DrillScene } from "../drill.ts";
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
function configured({ node }: Lab, address: string): Fault {
  return {
    what: `the agent is restarted with the gateway at ${address}`,
    inject: () => agentRestarted(node, { GPUAAS_TERMINAL_API_URL: address }),
    repair: () => agentRestarted(node),
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

/** What was presented to the gateway, and the serial of what the gateway says that it refused. */
async function certificates(file: string, { lab, before }: DrillScene): Promise<string> {
  const { serialNumber, subjectAltName } = new X509Certificate(readFileSync(file));
  const isOfIt = ({ msg, session_id }: Line) => msg?.startsWith("refused a") && session_id === before.session_id;
  const refused = gatewayOf(lab).program.lines().find(isOfIt);
  return `serial ${serialNumber.toLowerCase()}, ${subjectAltName}; refused: ${refused?.["serial"]}`;
}

const certificateRefused = {
  user: {
    ...{ code: "terminal_node_stream_mtls_failed", hop: "gateway_node_stream" },
    next_step: /Check the state of its certificate/,
  },
  page: { hop: "gateway_node_stream", signal: "terminal_node_stream_mtls_failed" },
  preflight: {
    ...{ failed_hop: "gateway_node_stream", symptom_hop: null },
    ...{ signal: "terminal_node_stream_mtls_failed", owner: "pki" },
  },
} as const;

/** `presented`: the file of the certificate; `error`: what the gateway's log says of it. */
const refusedCertificate = (error: RegExp, presented: (lab: Lab) => string) =>
  ({
    "M9: Gateway TLS/client-cert error": cell(error, async (scene) =>
      gatewayLines(scene.lab, (await terminalOfUser(scene)).id),
    ),
    "M9: cert serial/SAN": cell(
      /^serial ([0-9a-f]+), URI:holdfast:\/\/node\/[0-9a-f-]{36}; refused: \1$/,
      (scene) => certificates(presented(scene.lab), scene),
    ),
    "M9: correlation ID": cell(sameIdExpected, sameId),
  }) as const;

const streamConnects = {
  "M9: internal stream connects": cell(/a node's stream arrived/, ({ lab, after }) =>
    gatewayLines(lab, after.session_id),
  ),
};

/** To the gateway, every certificate of a node is one of the day before. The API goes on to accept it. */
export const certificateStale: Drill = {
  ...common,
  name: "terminal-certificate-stale",
  title: "the gateway rejects the node's certificate, because by its clock it has expired",
  rows: [{ row: "M9", variant: "stale" }, { row: "L12" }],
  fault: ({ directory }) => clockOff(directory, "+25h"),
  expect: certificateRefused,
  before: refusedCertificate(/refused a node's stream cert_expired/, ({ node }) =>
    join(node.stateDir, "identity.pem"),
  ),
  after: streamConnects,
};

export const certificateUntrusted: Drill = {
  ...common,
  name: "terminal-certificate-untrusted",
  title: "the node presents to the gateway a certificate of a CA that the gateway does not trust",
  rows: [{ row: "M9", variant: "untrusted" }],
  fault: otherCaForTerminals,
  expect: certificateRefused,
  before: refusedCertificate(/refused a stream without a node's certificate certificate_untrusted/, otherIdentity),
  after: streamConnects,
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
