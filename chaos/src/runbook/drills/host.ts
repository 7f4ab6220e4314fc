// The node itself: its agent, stopped, kept from restarting, or of another build.

import { anotherBuild, heartbeatOfAnotherVersion } from "../../faults/builds.ts";
import { agentStopped } from "../../faults/host.ts";
import { restartBlocked, serviceLines } from "../../faults/supervisor.ts";
import type { Drill } from "../drill.ts";
import { agentLog, cell, heartbeat, hop, idsExpected, idsInReport } from "./cells.ts";
import { isOffline, isSilent, nodeOffline } from "./link.ts";

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

/** Nobody asks the host: all that is known is that its heartbeats stopped. */
const silent = {
  user: nodeOffline,
  page: { hop: "node_heartbeat", signal: "node_agent_heartbeat_stale" },
  preflight: {
    ...{ failed_hop: "node_heartbeat", symptom_hop: null },
    ...{ signal: "node_agent_heartbeat_stale", owner: "node_runtime" },
  },
} as const;

export const agentStoppedDrill: Drill = {
  ...common,
  name: "service-stopped",
  title: "the agent's service is stopped; nobody can log in to the host",
  rows: [{ row: "M1", variant: "stopped" }, { row: "L4" }],
  fault: ({ node }) => agentStopped(node),
  takesEffect: ({ lab }) => isOffline(lab),
  withoutSsh: true,
  expect: silent,
  before: stopped,
  after: runsAgain,
};

export const restartBlockedDrill: Drill = {
  ...common,
  name: "service-restart-blocked",
  title: "the agent is killed, and its service manager may not restart it; nobody can log in to the host",
  rows: [{ row: "M1", variant: "restart blocked" }],
  fault: ({ node }) => restartBlocked(node),
  takesEffect: ({ lab }) => isOffline(lab),
  withoutSsh: true,
  expect: silent,
  before: {
    ...stopped,
    "M1: journald service state": cell(/^failed: ended with SIGKILL, restart blocked$/, ({ lab }) => {
      const { state, result } = serviceLines(lab.node).at(-1) ?? {};
      return `${state}: ${result}`;
    }),
  },
  after: {
    ...runsAgain,
    "M1: heartbeat becomes current": cell(/^online, last heartbeat \S+, service active$/, async (scene) => {
      const state = serviceLines(scene.lab.node).findLast((line) => line["state"] !== undefined)?.["state"];
      return `${await heartbeat(scene)}, service ${state}`;
    }),
  },
};

export const incompatibleBuild: Drill = {
  ...common,
  labName: "identity",
  name: "agent-build-incompatible",
  title: "the agent on the host is of a build that speaks another version of the protocol",
  rows: [{ row: "L5" }],
  fault: ({ node }) => anotherBuild(node, heartbeatOfAnotherVersion),
  takesEffect: isSilent("agent_version_drift"),
  expect: {
    user: nodeOffline,
    page: { hop: "node_recovery_status", signal: "node_agent_binary_invalid" },
    preflight: {
      ...{ failed_hop: "node_recovery_status", symptom_hop: "node_heartbeat" },
      ...{ signal: "node_agent_binary_invalid", owner: "release_packaging" },
    },
  },
  before: { "the agent's log names the refusal": agentLog(/^agent_version_drift$/, /HTTP 4\d\d/) },
  after: { "tasks are taken again": runsAgain["M1: task poll resumes"] },
};
