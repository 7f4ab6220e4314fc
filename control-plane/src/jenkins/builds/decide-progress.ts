// What has become of a build since the last poll: a function of its row, of its lease, and of its node as the controller reports it.
// Pure. A node takes a second build if Jenkins finds it idle, so it is made offline as soon as it is busy: one VM, one build. Only a
// node that is offline and idle is removed, so no running build is ever cut off.

import type { JenkinsBuildState } from "@holdfast/contracts/endpoints/jenkins";
import type { LeaseState } from "@holdfast/contracts/endpoints/leases";
import type { BuildEvent } from "./transitions/table.ts";

export type ProgressingBuild = {
  status: JenkinsBuildState;
  lostAt: number | undefined;
  leftAt: number | undefined;
};

/** Undefined: it does not exist any more. */
export type BuildLease = { status: LeaseState; startedAt: number | undefined } | undefined;

/** Undefined: the controller has no such node. */
export type ReportedNode =
  | {
      /** No agent is connected, or it takes no builds. */
      offline: boolean;
      /** Made offline on purpose. */
      heldOffline: boolean;
      busy: boolean;
      buildUrl: string | undefined;
    }
  | undefined;

export type Limits = { connectSeconds: number; graceSeconds: number; startSeconds: number };

export type Progress = {
  event?: BuildEvent;
  /** To be done on the controller. */
  action?: "hold_offline";
};

/** The VM exists, or will. */
const livingLease: ReadonlySet<LeaseState> = new Set([
  "requested",
  "provisioning",
  "booting",
  "connected",
  "running",
]);

export function decideProgress(
  build: ProgressingBuild,
  seen: { lease: BuildLease; node: ReportedNode; isQueued: boolean },
  limits: Limits,
  now: number,
): Progress {
  const { lease, node, isQueued } = seen;
  const over = (since: number | undefined, seconds: number) =>
    since !== undefined && now - since >= seconds * 1000;
  if (build.status === "claimed") return isQueued ? {} : { event: "item_gone" };
  if (build.status === "removing" || build.status === "ended") return {};
  if (!lease || !livingLease.has(lease.status)) return { event: "lease_ended" };
  if (!node) return { event: "node_missing" };
  if (node.busy) return busy(build, node, { graceOver: over(build.lostAt, limits.graceSeconds) });
  const lost = node.offline && !node.heldOffline;
  if (build.status === "building") {
    if (lost) return { event: "disconnected" };
    return node.heldOffline ? { event: "build_ended" } : { action: "hold_offline" };
  }
  // A build that began and ended between two polls also leaves an idle node without its item.
  if (!isQueued && over(build.leftAt, limits.startSeconds)) {
    return node.heldOffline || node.offline ? { event: "item_gone" } : { action: "hold_offline" };
  }
  if (build.status === "launching") {
    if (!node.offline) return { event: "agent_connected" };
    if (over(lease.startedAt, limits.connectSeconds)) return { event: "never_connected" };
    return isQueued || build.leftAt !== undefined ? {} : { event: "item_left" };
  }
  if (lost) {
    if (build.lostAt === undefined) return { event: "agent_lost" };
    if (over(build.lostAt, limits.graceSeconds)) return { event: "disconnected" };
  } else if (build.lostAt !== undefined) return { event: "agent_returned" };
  return isQueued || build.leftAt !== undefined ? {} : { event: "item_left" };
}

/** A build that waits for its agent to come back keeps its node busy. */
function busy(
  { status, lostAt }: ProgressingBuild,
  node: NonNullable<ReportedNode>,
  { graceOver }: { graceOver: boolean },
): Progress {
  const hold = node.heldOffline ? {} : ({ action: "hold_offline" } as const);
  if (status !== "building") return { event: "build_started", ...hold };
  if (node.offline && !node.heldOffline) {
    if (lostAt === undefined) return { event: "agent_lost" };
    return graceOver ? { event: "disconnected" } : {};
  }
  return lostAt === undefined ? hold : { event: "agent_returned", ...hold };
}
