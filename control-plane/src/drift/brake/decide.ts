// The brake: whether the control plane itself is suspected, so that nothing may act on many nodes now. Pure. Machines fail one
// by one, or by the rack; when most of a fleet is lost at once, the cause is ours or in front of us.

import { brakeReasons } from "@holdfast/contracts/endpoints/fleet";
import type { BrakePolicy } from "../policy.ts";

/** Of the whole installation. */
export type FleetFacts = {
  now: number;
  /** Nodes that are expected to report. */
  nodes: number;
  /** Of them, those that stopped reporting, or were rejected, within the window of the policy. */
  lost: number;
  /** The last outage of the api; `to` is null while it goes on. */
  outage: { from: number; to: number | null } | null;
  /** An ingress does not accept what our CA signs. */
  caMismatch: boolean;
};

export type BrakeReason = (typeof brakeReasons)[number];

export type Brake = { braked: false } | { braked: true; why: BrakeReason };

const holds: Record<BrakeReason, (facts: FleetFacts, policy: BrakePolicy) => boolean> = {
  ca_mismatch: ({ caMismatch }) => caMismatch,
  control_plane_outage: ({ outage, now }, { leastOutageMs, returnAfterOutageMs }) =>
    outage !== null &&
    (outage.to ?? now) - outage.from >= leastOutageMs &&
    (outage.to === null || now < outage.to + returnAfterOutageMs),
  fleet_lost: ({ nodes, lost }, { leastOfFleet, mostOfFleet }) =>
    lost >= leastOfFleet && lost > nodes * mostOfFleet,
};

export function decideBrake(facts: FleetFacts, policy: BrakePolicy): Brake {
  // The first that holds, in their order.
  const why = brakeReasons.find((reason) => holds[reason](facts, policy));
  return why === undefined ? { braked: false } : { braked: true, why };
}
