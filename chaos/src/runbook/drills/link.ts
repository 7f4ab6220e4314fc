// Between the node and the API: the network.

import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { egressRejected } from "../../faults/network.ts";
import type { Lab } from "../../lab/lab.ts";
import { PATIENCE_SECONDS, until, within } from "../../until.ts";
import type { Drill, DrillScene } from "../drill.ts";
import { agentLog, cell, hop } from "./cells.ts";

const common = { labName: "node", lab: { gateway: true }, user: "terminal" } as const;

/** The agent knows why, and the server has noticed. */
const isSilent =
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

const unreachable = {
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
  "M2: endpoint profile": cell(/^https:\/\/nodes[.]holdfast[.]test:18442 of profile \S+/, ({ before }) => {
    const { node_runtime_api_url, profile } = before.expected;
    return `${node_runtime_api_url} of profile ${profile}`;
  }),
});
const reached = {
  "M2: `/internal/v1/nodes/{node_id}/tasks/wait` probe succeeds": hop(
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
