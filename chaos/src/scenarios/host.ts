// The host that the agent runs on: its disk, its clock, its files.

import { clockOff, diskFull, movableClock, trustReplaced } from "../faults/host.ts";
import { withoutToken } from "../faults/recovery.ts";
import type { Expected } from "../judge.ts";
import { LONG_POLLS } from "../lab/node.ts";
import type { Scenario } from "../scenario.ts";
import { ANSWERED_SECONDS, type Story } from "../story.ts";
import { cutOff, disconnected } from "./cut-off.ts";
import { foreignCa } from "./foreign-ca.ts";

export const fullDisk: Scenario = {
  name: "disk-full",
  title: "the file system of the agent's state is full",
  expect: {
    rows: ["N08"],
    sightings: [
      { by: "dashboard", code: "disk_full", within: 20 },
      { by: "host", code: "disk_full", within: 20 },
    ],
  },
  lab: { stateMegabytes: 24 },
  async run(story) {
    await story.breaks(diskFull(story.lab.node));
    await Promise.all([story.dashboardSees("disk_full"), story.hostSees("disk_full")]);
    const task = await story.gives();
    await story.succeeds(task);
    story.notes("its journal has room of its own: the task is done and its result is not lost");
    await story.repairs();
    await story.recovers();
  },
};

const clock: Expected = {
  rows: ["D26"],
  sightings: [
    { by: "dashboard", code: "clock_skew", within: 20 },
    { by: "host", code: "clock_skew", within: 25 },
    { by: "user", code: "clock_skew", within: 45 },
  ],
};

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
  await Promise.all([story.dashboardSees("clock_skew"), story.hostSees("clock_skew")]);
  await story.userIsRefused({ expiresSeconds: ANSWERED_SECONDS });
  await story.repairs();
  // The agent learns of the right time with its next heartbeat; until then it goes on refusing tasks.
  await story.dashboardClears("clock_skew");
  await story.recovers();
}

export const staleTrust: Scenario = {
  name: "trust-bundle-stale",
  title: "the agent starts with an old bundle of the server's CA, and has no recovery token",
  // It may have tried to recover before, with the token that was revoked.
  expect: { ...disconnected("trust_bundle_invalid", 25).expect, beside: "recovery_refused" },
  lab: { agentEnv: () => LONG_POLLS },
  async run(story) {
    await withoutToken(story.lab);
    await cutOff(story, trustReplaced(story.lab.node, foreignCa), "trust_bundle_invalid", {
      silence: "connection_lost",
    });
  },
};
