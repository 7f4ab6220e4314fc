// Hosts that lose their key while something else is wrong with them, too.

import { clockOff, diskFull, trustReplaced } from "../faults/host.ts";
import { foreignCa } from "../scenarios/foreign-ca.ts";
import type { Recovery } from "./recovery.ts";
import { comesBackWithoutKey, hasRecoveryToken } from "./steps.ts";
import type { RecoveryStory } from "./story.ts";

export const keyDeleted: Recovery = {
  name: "key-deleted",
  title: "the file with the node's key is deleted",
  async run(story) {
    await comesBackWithoutKey(story);
    await story.isGreen(["node.recover"]);
  },
};

export const diskFullDuringRecovery: Recovery = {
  name: "disk-full",
  title: "the key is deleted, and the disk is full while the node recovers",
  async run(story) {
    const { lab } = story;
    await comesBackWithoutKey(story, diskFull(lab.node));
    await story.isClassified("disk_full");
    await story.repairs();
    await story.isGreen(["node.recover"]);
  },
};

/** Nothing is issued while the clock is wrong. */
async function wrongClock(story: RecoveryStory, offset: string): Promise<void> {
  const { lab } = story;
  await hasRecoveryToken(lab);
  const clock = clockOff(lab.directory, offset);
  await story.breaks(clock);
  await story.isClassified("clock_skew");
  const before = (await story.node()).certificate?.serial;
  await comesBackWithoutKey(story);
  // The clock was wrong before, too: only what comes after is about this recovery.
  await story.hostRecords("clock_skew", await story.hostRecords("identity_key_missing"));
  if ((await story.node()).certificate?.serial !== before) throw new Error("a certificate was issued");
  await clock.repair();
  await story.isGreen(["node.recover"]);
}

export const clockAhead: Recovery = {
  name: "clock-ahead",
  title: "the key is deleted while the host's clock is ten minutes ahead",
  run: (story) => wrongClock(story, "+600"),
};

export const clockBehind: Recovery = {
  name: "clock-behind",
  title: "the key is deleted while the host's clock is ten minutes behind",
  run: (story) => wrongClock(story, "-600"),
};

export const staleTrust: Recovery = {
  name: "trust-stale",
  title:
    "the bundle with the server's CA is an old one, so the node cannot connect; what is pinned for recovery is right",
  async run(story) {
    const { lab } = story;
    await hasRecoveryToken(lab);
    await story.breaks({ ...trustReplaced(lab.node, foreignCa), repair: async () => undefined });
    await story.handsInRecords("trust_bundle_invalid");
    await story.isClassified("server_tls_untrusted");
    await story.isGreen(["node.recover"]);
  },
};
