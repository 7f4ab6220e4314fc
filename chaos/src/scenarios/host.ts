// The host that the agent runs on: its disk, its clock, its files.

import { clockOff, diskFull, movableClock, trustReplaced } from "../faults/host.ts";
import type { Scenario } from "../scenario.ts";
import type { Story } from "../story.ts";
import { foreignCa } from "./foreign-ca.ts";

export const fullDisk: Scenario = {
  name: "disk-full",
  title: "the file system of the agent's state is full",
  expect: { hop: "host_disk", signal: "disk_full", seconds: 15 },
  lab: { stateMegabytes: 24 },
  async run(story) {
    await story.breaks(diskFull(story.lab.node));
    await story.dashboardSees("disk_full");
    await story.hostSees("disk_full");
    const task = await story.gives();
    await story.succeeds(task);
    story.notes("its journal has room of its own: the task is done and its result is not lost");
    await story.mends();
    await story.allIsWell();
    await story.succeeds(await story.gives());
  },
};

const clock = { hop: "host_clock", signal: "clock_skew", seconds: 15 } as const;

export const clockAhead: Scenario = {
  name: "clock-ahead",
  title: "the node's clock is ten minutes ahead",
  expect: clock,
  lab: { agentEnv: movableClock },
  run: (story) => wrongClock(story, "+600"),
};

export const clockBehind: Scenario = {
  name: "clock-behind",
  title: "the node's clock is ten minutes behind",
  expect: clock,
  lab: { agentEnv: movableClock },
  run: (story) => wrongClock(story, "-600"),
};

async function wrongClock(story: Story, offset: string): Promise<void> {
  await story.breaks(clockOff(story.lab.directory, offset));
  await story.dashboardSees("clock_skew");
  const refused = await story.gives({ params: { echo: "the time" } });
  await story.fails(refused, "clock_skew");
  await story.mends();
  await story.allIsWell();
  await story.succeeds(await story.gives({ params: { echo: "the time" } }));
}

export const staleTrust: Scenario = {
  name: "trust-bundle-stale",
  title: "the agent starts with an old bundle of the server's CA",
  expect: { hop: "tls", signal: "node_agent_api_tls_failed", seconds: 20 },
  async run(story) {
    await story.breaks(trustReplaced(story.lab.node, foreignCa));
    const task = await story.gives();
    await story.hostSees("trust_bundle_invalid");
    await story.dashboardSees("heartbeat_stale");
    await story.mends();
    await story.succeeds(task);
    await story.allIsWell();
  },
};
