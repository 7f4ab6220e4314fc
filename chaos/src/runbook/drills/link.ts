// Between the node and the API: the network, names, and what the node trusts.

import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { together } from "../../faults/fault.ts";
import { trustReplaced } from "../../faults/host.ts";
import { nameRefused } from "../../faults/names.ts";
import { connectionsReset, egressRejected } from "../../faults/network.ts";
import { withoutToken } from "../../faults/recovery.ts";
import type { Lab } from "../../lab/lab.ts";
import { foreignCa } from "../../scenarios/foreign-ca.ts";
import { PATIENCE_SECONDS, until, within } from "../../until.ts";
import type { Drill, DrillScene } from "../drill.ts";
import { agentLog, endpointProfile, hop } from "./cells.ts";

const common = { labName: "node", lab: { gateway: true }, user: "terminal" } as const;

/** The agent knows why, and the server has noticed. */
export const isSilent =
  (reason: string) =>
  async ({ lab, brokenAt }: DrillScene) => {
    const written = lab.node.agent().line((line) => line.reason === reason, brokenAt);
    await within(`the agent's log has ${reason}`, PATIENCE_SECONDS, written);
    await isOffline(lab);
  };

export async function isOffline({ control, node }: Lab): Promise<void> {
  await until("the node does not report", PATIENCE_SECONDS, async () => {
    const { connection } = await control.operator(getNode, { params: { node_id: node.id } });
    return connection !== "online";
  });
}

export const nodeOffline = {
  code: "terminal_node_offline",
  hop: "node_heartbeat",
  next_step: /holdfast agent diagnose/,
};

export const unreachable = {
  user: nodeOffline,
  page: { hop: "node_runtime_api_reachability", signal: "node_agent_api_unreachable" },
  preflight: {
    ...{ failed_hop: "node_runtime_api_reachability", symptom_hop: "node_heartbeat" },
    ...{ signal: "node_agent_api_unreachable", owner: "environment_networking" },
  },
} as const;

const evidence = (probe: RegExp, reason: RegExp) => ({
  "M2: Helper SSH probe detail": hop("before", "node_runtime_api_reachability", probe),
  "M2: node-agent poll errors": agentLog(reason, /cannot (reach|resolve)/),
  "M2: endpoint profile": endpointProfile,
});
const TASKS_WAIT = "M2: `/internal/v1/nodes/{node_id}/tasks/wait` probe succeeds";
const reached = {
  [TASKS_WAIT]: hop(
    ...(["after", "node_runtime_api_reachability"] as const),
    /^passed from node: https:\/\/nodes[.]holdfast[.]test:18442 in \d+ ms, certificate accepted$/,
  ),
};

export const egressBlocked: Drill = {
  ...common,
  name: "api-egress-blocked",
  title: "a firewall refuses what the node sends to the API",
  rows: [{ row: "M2", variant: "egress" }, { row: "L1" }],
  fault: egressRejected,
  takesEffect: isSilent("api_unreachable"),
  expect: unreachable,
  before: evidence(/^failed from node: .*tcp_(refused|failed)/, /^api_unreachable$/),
  after: reached,
};

export const nameRemoved: Drill = {
  ...common,
  name: "api-name-removed",
  title: "the API's node-facing name does not resolve",
  rows: [{ row: "M2", variant: "resolve entry" }, { row: "L2" }],
  // A name matters to new connections only: those that exist are reset.
  fault: (lab) => together("the node has to resolve the name again", connectionsReset(lab), nameRefused(lab)),
  takesEffect: isSilent("api_name_unresolved"),
  expect: unreachable,
  before: evidence(/^failed from node: .*dns_failed/, /^api_name_unresolved$/),
  after: reached,
};

export const trustStale: Drill = {
  ...common,
  labName: "identity",
  name: "trust-bundle-replaced",
  title: "the node's bundle with the API's CA is an old one, and the node has no recovery token",
  rows: [{ row: "L3" }],
  fault: (lab) => ({ ...trustReplaced(lab.node, foreignCa), prepare: () => withoutToken(lab) }),
  takesEffect: isSilent("trust_bundle_invalid"),
  expect: {
    user: nodeOffline,
    page: { hop: "node_runtime_api_reachability", signal: "node_agent_api_tls_failed" },
    preflight: {
      ...{ failed_hop: "node_runtime_api_reachability", symptom_hop: "node_heartbeat" },
      ...{ signal: "node_agent_api_tls_failed", owner: "pki" },
    },
  },
  before: {
    "the host's probe": hop("before", "node_runtime_api_reachability", /^failed from node: .*tls_untrusted/),
    "the agent's log names the bundle": agentLog(/^trust_bundle_invalid$/, /trust[.]pem/),
  },
  after: { "the API's certificate is verified": reached[TASKS_WAIT] },
};
