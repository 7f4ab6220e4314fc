// The transition table of builds that get a VM: every state, every event, and the outcome of each pair. The statement beside this
// file is built from it. It is the only one that changes a build's status.

import type { JenkinsBuildState } from "@holdfast/contracts/endpoints/jenkins";

export const buildEvents = [
  /** The node exists on the controller, and the lease was stored with its secret. */
  "leased",
  /** No node or lease can be made for it. */
  "not_leased",
  /** The node is online on the controller. */
  "agent_connected",
  "agent_lost",
  /** Connected again within the grace period. */
  "agent_returned",
  /** The node is busy. */
  "build_started",
  /** The node was busy, is idle, and takes no other build. */
  "build_ended",
  /** The item is not in the queue any more, and the node is not busy. */
  "item_left",
  /** The same, for longer than Jenkins needs to start a build. */
  "item_gone",
  /** The agent of a started VM did not connect in time. */
  "never_connected",
  /** The agent was away for longer than the grace period. */
  "disconnected",
  /** The VM is gone or going: its lease has ended, or ends. */
  "lease_ended",
  /** Somebody deleted the node on the controller. */
  "node_missing",
  /** The node does not exist any more, and the lease has ended. */
  "removed",
] as const;
export type BuildEvent = (typeof buildEvents)[number];

export type BuildOutcome =
  | { to: JenkinsBuildState }
  /** The state stays; what was seen is noted in the row. */
  | "noted"
  | "unchanged"
  /** The checks of the table `jenkins_builds` allow no row for which this could happen. */
  | "impossible";

type Row = Record<BuildEvent, BuildOutcome>;

const unchanged: Row = Object.fromEntries(buildEvents.map((event) => [event, "unchanged"])) as Row;
const removing = { to: "removing" } as const;

/** It has a lease, and a node on the controller. */
const withLease: Row = {
  ...unchanged,
  not_leased: "impossible",
  lease_ended: removing,
  node_missing: removing,
  removed: "impossible",
};

export const buildTable: Record<JenkinsBuildState, Row> = {
  claimed: {
    ...unchanged,
    leased: { to: "launching" },
    not_leased: removing,
    item_gone: removing,
    lease_ended: "impossible",
    removed: "impossible",
  },
  launching: {
    ...withLease,
    agent_connected: { to: "connected" },
    // A build that began between two polls.
    build_started: { to: "building" },
    item_left: "noted",
    item_gone: removing,
    never_connected: removing,
  },
  connected: {
    ...withLease,
    agent_lost: "noted",
    agent_returned: "noted",
    build_started: { to: "building" },
    item_left: "noted",
    item_gone: removing,
    disconnected: removing,
  },
  building: {
    ...withLease,
    agent_lost: "noted",
    agent_returned: "noted",
    build_ended: removing,
    disconnected: removing,
  },
  removing: { ...unchanged, removed: { to: "ended" } },
  ended: unchanged,
};

export const INITIAL_STATE: JenkinsBuildState = "claimed";
