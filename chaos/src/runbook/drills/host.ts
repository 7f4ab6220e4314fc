// The node itself: its agent.

import { agentStopped } from "../../faults/host.ts";
import type { Drill } from "../drill.ts";
import { cell, heartbeat, hop, idsExpected, idsInReport } from "./cells.ts";
import { isOffline, nodeOffline } from "./link.ts";

const common = { labName: "node", lab: { gateway: true }, user: "terminal" } as const;

const stopped = {
  "M1: Node read model heartbeat summary": cell(/^(offline|stale), last heartbeat \d{4}-/, heartbeat),
  "M1: journald service state": cell(/^agent_down$/, async ({ lab }) => {
    const { findings } = await lab.node.diagnose();
    return findings.map(({ reason }) => reason).join(" ");
  }),
  "M1: allocation/node IDs": cell(idsExpected, idsInReport),
};
const runsAgain = {
  "M1: heartbeat becomes current": cell(/^online, last heartbeat \d{4}-/, heartbeat),
  "M1: task poll resumes": hop("after", "node_task_round_trip", /^passed from node: task \S+ completed$/),
};

export const agentStoppedDrill: Drill = {
  ...common,
  name: "service-stopped",
  title: "the agent's service is stopped; nobody can log in to the host",
  rows: [{ row: "M1", variant: "stopped" }, { row: "L4" }],
  fault: ({ node }) => agentStopped(node),
  takesEffect: ({ lab }) => isOffline(lab),
  withoutSsh: true,
  expect: {
    user: nodeOffline,
    page: { hop: "node_heartbeat", signal: "node_agent_heartbeat_stale" },
    preflight: {
      ...{ failed_hop: "node_heartbeat", symptom_hop: null },
      ...{ signal: "node_agent_heartbeat_stale", owner: "node_runtime" },
    },
  },
  before: stopped,
  after: runsAgain,
};
