// The agent itself: stopped, of another build.

import { anotherBuild, heartbeatOfAnotherVersion, PROBE, withoutNetworkProbe } from "../faults/builds.ts";
import { agentStopped } from "../faults/host.ts";
import { LONG_POLLS } from "../lab/node.ts";
import type { Scenario } from "../scenario.ts";
import { ANSWERED_SECONDS } from "../story.ts";
import { PATIENCE_SECONDS, within } from "../until.ts";
import { cutOff, disconnected } from "./cut-off.ts";

export const stopped: Scenario = {
  name: "agent-stopped",
  title: "the agent's service is stopped",
  expect: {
    rows: ["D01"],
    sightings: [
      { by: "dashboard", code: "connection_lost", within: 25 },
      { by: "host", code: "agent_down", within: 25 },
      { by: "user", code: "task_not_taken", within: 60 },
    ],
  },
  lab: { agentEnv: () => LONG_POLLS },
  run: (story) => cutOff(story, agentStopped(story.lab.node), "agent_down", { silence: "connection_lost" }),
};

export const incompatible: Scenario = {
  name: "agent-incompatible",
  title: "the agent is replaced by one that speaks another version of the protocol",
  ...disconnected("agent_version_drift", 40),
  lab: { agentEnv: () => LONG_POLLS },
  async run(story) {
    const fault = anotherBuild(story.lab.node, heartbeatOfAnotherVersion);
    await fault.prepare();
    await cutOff(story, fault, "agent_version_drift", { silence: "connection_lost" });
  },
};

export const outdated: Scenario = {
  name: "agent-outdated",
  title: "the agent is replaced by one that does not know a type of task yet",
  expect: {
    rows: ["N05"],
    before: { attention: ["node_task_claim_failed"] },
    sightings: [
      { by: "history", code: "task_refused", within: 45 },
      { by: "user", code: "task_type_unknown", within: 45 },
    ],
  },
  async run(story) {
    const { node } = story.lab;
    const fault = anotherBuild(node, withoutNetworkProbe);
    await fault.prepare();
    await story.breaks(fault);
    const connected = node.agent().line(({ msg }) => msg === "heartbeat accepted", 0);
    await within("the other build is connected", PATIENCE_SECONDS, connected);
    await story.userIsRefused({ type: PROBE, expiresSeconds: ANSWERED_SECONDS });
    await story.historyHas("task_refused");
    await story.repairs();
    await story.succeeds(await story.gives({ type: PROBE }));
    await story.recovers();
  },
};
