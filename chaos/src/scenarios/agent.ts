// The agent itself: stopped, of another build.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { copyCheckout } from "../../../testkit/processes/checkout.ts";
import type { Fault } from "../faults/fault.ts";
import { agentStopped } from "../faults/host.ts";
import type { LabNode } from "../lab/node.ts";
import type { Scenario } from "../scenario.ts";
import { cutOff, disconnected } from "./cut-off.ts";

export const stopped: Scenario = {
  name: "agent-stopped",
  title: "the agent's service is stopped",
  expect: {
    sightings: [
      { by: "dashboard", code: "connection_lost", within: 25 },
      { by: "host", code: "agent_down", within: 25 },
      { by: "user", code: "task_not_taken", within: 60 },
    ],
  },
  run: (story) => cutOff(story, agentStopped(story.lab.node), "agent_down", { silence: "connection_lost" }),
};

export const incompatible: Scenario = {
  name: "agent-incompatible",
  title: "the agent is replaced by one that speaks another version of the protocol",
  ...disconnected("agent_version_drift", 40),
  run: (story) =>
    cutOff(story, anotherBuild(story.lab.node, heartbeatOfAnotherVersion), "agent_version_drift", {
      silence: "connection_lost",
    }),
};

export const outdated: Scenario = {
  name: "agent-outdated",
  title: "the agent is replaced by one that does not know a type of task yet",
  expect: {
    sightings: [
      { by: "history", code: "task_refused", within: 45 },
      { by: "user", code: "task_type_unknown", within: 45 },
    ],
  },
  async run(story) {
    await story.breaks(anotherBuild(story.lab.node, withoutNetworkProbe));
    // The new agent may take a while to start.
    await story.userIsRefused({ type: PROBE, expiresSeconds: 40 });
    await story.historyHas("task_refused");
    await story.mends();
    await story.succeeds(await story.gives({ type: PROBE }));
    await story.recovers();
  },
};

const PROBE = "diag.network_probe";

/** Heartbeats have a field that this server does not know. */
function heartbeatOfAnotherVersion(root: string): void {
  const file = join(root, "node-agent/src/core/heartbeat.ts");
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
