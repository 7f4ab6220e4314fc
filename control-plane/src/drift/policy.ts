// The limits that a classification uses, with their defaults.

import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { Values } from "@holdfast/kit/settings";
import { RECONNECT_WITHIN_SECONDS } from "../nodes/presence/freshness.ts";
import type { Policy } from "./classify/derive.ts";
import type { policySettings } from "./settings.ts";

export const defaultPolicy: Policy = {
  heartbeatStaleAfterMs: 120_000,
  reconnectWithinMs: RECONNECT_WITHIN_SECONDS * 1000,
  returnExpectedWithinMs: 180_000,
  clockToleranceMs: CLOCK_TOLERANCE_SECONDS * 1000,
  diskPressurePercent: 90,
  diskFullPercent: 98,
};

/** With what operators have set. */
export function policyOf(settings: Values<typeof policySettings>): Policy {
  return {
    ...defaultPolicy,
    heartbeatStaleAfterMs: settings.nodeHeartbeatStaleSeconds * 1000,
    diskPressurePercent: settings.nodeDiskPressurePercent,
  };
}
