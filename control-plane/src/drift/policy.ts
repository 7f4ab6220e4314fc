// The limits that a classification uses, with their defaults.

import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { Values } from "@holdfast/kit/settings";
import { RECONNECT_WITHIN_SECONDS } from "../nodes/presence/freshness.ts";
import type { Policy } from "./classify/derive.ts";
import type { policySettings } from "./settings.ts";

const RETURN_EXPECTED_WITHIN_MS = 180_000;

export const defaultPolicy: Policy = {
  heartbeatStaleAfterMs: 120_000,
  reconnectWithinMs: RECONNECT_WITHIN_SECONDS * 1000,
  returnExpectedWithinMs: RETURN_EXPECTED_WITHIN_MS,
  clockToleranceMs: CLOCK_TOLERANCE_SECONDS * 1000,
  diskPressurePercent: 90,
  diskFullPercent: 98,
};

/** With what operators have set, also while the platform runs: its values change. */
export function policyOf(settings: Values<typeof policySettings>): Policy {
  return {
    ...defaultPolicy,
    get heartbeatStaleAfterMs() {
      return settings.nodeHeartbeatStaleSeconds * 1000;
    },
    get diskPressurePercent() {
      return settings.nodeDiskPressurePercent;
    },
  };
}

/** When problems of several nodes count as one. */
export type CommonCausePolicy = {
  /** Fewer nodes may have the same problem by chance. */
  leastNodes: number;
  /** Of the nodes that share the attribute, or of all nodes, at least this part is affected. */
  shareOfAttribute: number;
  beganWithinMs: number;
  /** Of the whole fleet, more than this part suspects the control plane; in a smaller fleet that may be chance. */
  mostOfFleet: number;
  leastOfFleet: number;
  /** Nodes that go offline together sent their last heartbeats, one a minute, within this time. */
  atOnceMs: number;
  /** A shorter outage of the control plane ends before any node counts as offline. */
  leastOutageMs: number;
  /** Nodes that went offline so long before or after an outage of the control plane went offline because of it. */
  aroundOutageMs: number;
  /** Until then they are expected back. */
  returnAfterOutageMs: number;
};

export const defaultCommonCausePolicy: CommonCausePolicy = {
  leastNodes: 3,
  shareOfAttribute: 0.5,
  beganWithinMs: 300_000,
  mostOfFleet: 0.5,
  leastOfFleet: 5,
  atOnceMs: 120_000,
  leastOutageMs: RECONNECT_WITHIN_SECONDS * 1000,
  aroundOutageMs: 120_000,
  returnAfterOutageMs: RETURN_EXPECTED_WITHIN_MS,
};

/** When the control plane is suspected, so that nothing acts on many nodes. */
export type BrakePolicy = Pick<
  CommonCausePolicy,
  "leastOfFleet" | "mostOfFleet" | "leastOutageMs" | "returnAfterOutageMs"
> & {
  /** Nodes that were lost longer ago stay lost for another reason. */
  lostWithinMs: number;
  /** Later than this, a heartbeat is missing; earlier than a node counts as offline. */
  lateAfterMs: number;
};

export const defaultBrakePolicy: BrakePolicy = {
  ...defaultCommonCausePolicy,
  lostWithinMs: 900_000,
  // A heartbeat every minute.
  lateAfterMs: 75_000,
};
