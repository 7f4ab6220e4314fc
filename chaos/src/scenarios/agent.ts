// The agent itself: stopped, of another build.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { copyCheckout } from "../../../cli/test/support/checkout.ts";
import type { Fault } from "../faults/fault.ts";
import { agentStopped } from "../faults/host.ts";
import type { LabNode } from "../lab/node.ts";
import type { Scenario } from "../scenario.ts";

export const stopped: Scenario = {
  name: "agent-stopped",
  title: "the agent's service is stopped",
  expect: { hop: "heartbeat", signal: "node_agent_heartbeat_stale", seconds: 25 },
  async run(story) {
    await story.breaks(agentStopped(story.lab.node));
    const task = await story.gives();
    await story.dashboardSees("heartbeat_stale");
    const { findings } = await story.lab.node.diagnose();
    const down = findings.find(({ reason }) => reason === "agent_down");
    if (down?.signal !== "node_agent_process_down")
      throw new Error("diagnose does not say that the agent is down");
    story.notes("on the host: agent_down, node_agent_process_down");
    await story.mends();
    await story.succeeds(task);
    await story.allIsWell();
  },
};

export const incompatible: Scenario = {
  name: "agent-incompatible",
  title: "the agent is replaced by one that speaks another version of the protocol",
  expect: { hop: "agent_process", signal: "node_agent_binary_invalid", seconds: 30 },
  async run(story) {
    await story.breaks(anotherBuild(story.lab.node, heartbeatOfAnotherVersion));
    const task = await story.gives();
    await story.hostSees("agent_version_drift");
    await story.dashboardSees("heartbeat_stale");
    await story.mends();
    await story.succeeds(task);
    await story.allIsWell();
  },
};

export const outdated: Scenario = {
  name: "agent-outdated",
  title: "the agent is replaced by one that does not know a type of task yet",
  expect: { hop: "task_claim", signal: "node_task_claim_failed", seconds: 40 },
  async run(story) {
    await story.breaks(anotherBuild(story.lab.node, withoutNetworkProbe));
    const refused = await story.gives({ type: PROBE });
    const { record } = await story.historyHas("task_refused");
    if (record.correlation_id !== refused.correlation_id) throw new Error("the record is not of that task");
    const { nextStep } = await story.fails(refused, "task_type_unknown");
    story.notes(`whoever gave the task is told: ${nextStep}`);
    await story.mends();
    await story.succeeds(await story.gives({ type: PROBE }));
    await story.allIsWell();
  },
};

const PROBE = "diag.network_probe";

/** Heartbeats have a field that this server does not know. */
function heartbeatOfAnotherVersion(root: string): void {
  const file = join(root, "node-agent/src/link/heartbeat.ts");
  const source = readFileSync(file, "utf8");
  const changed = source.replace("running: known.running,", 'running: known.running, of_another_version: "yes",');
  if (changed === source) throw new Error(`${file} is not as this scenario knows it`);
  writeFileSync(file, changed);
}

function withoutNetworkProbe(root: string): void {
  rmSync(join(root, "tasks", PROBE), { recursive: true });
}

/** A build of our sources with one thing changed. */
function anotherBuild(node: LabNode, change: (root: string) => void): Fault {
  let copy: ReturnType<typeof copyCheckout> | undefined;
  return {
    what: "the agent is of another version",
    async inflict() {
      copy = copyCheckout({});
      change(copy.root);
      await node.agent().stop();
      node.startAgent({ command: copy.command });
    },
    async mend() {
      await node.agent().stop();
      copy?.remove();
      node.startAgent();
    },
  };
}
