// The agent itself: stopped, of another build.

import { readFileSync } from "node:fs";
import { copyCheckout } from "../../../cli/test/support/checkout.ts";
import type { Fault } from "../faults/fault.ts";
import { agentStopped } from "../faults/host.ts";
import type { LabNode } from "../lab/node.ts";
import type { Scenario } from "../scenario.ts";

export const stopped: Scenario = {
  name: "agent-stopped",
  title: "the agent's service is stopped",
  expect: { hop: "heartbeat", signal: "node_agent_heartbeat_stale", seconds: 15 },
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
    await story.dashboardIsCalm();
  },
};

export const incompatible: Scenario = {
  name: "agent-incompatible",
  title: "the agent is replaced by one that speaks another version of the protocol",
  expect: { hop: "agent_process", signal: "node_agent_binary_invalid", seconds: 30 },
  async run(story) {
    await story.breaks(otherBuild(story.lab.node));
    const task = await story.gives();
    await story.hostSees("agent_version_drift");
    await story.dashboardSees("heartbeat_stale");
    await story.mends();
    await story.succeeds(task);
    await story.dashboardIsCalm();
  },
};

/** A build of our sources whose heartbeats have a field that this server does not know. */
function otherBuild(node: LabNode): Fault {
  const file = "node-agent/src/link/heartbeat.ts";
  const source = readFileSync(new URL(`../../../${file}`, import.meta.url), "utf8");
  const changed = source.replace("running: known.running,", 'running: known.running, of_another_version: "yes",');
  if (changed === source) throw new Error(`${file} is not as this scenario knows it`);
  let copy: ReturnType<typeof copyCheckout> | undefined;
  return {
    what: "the agent is of another version",
    async inflict() {
      copy = copyCheckout({ [file]: changed });
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
