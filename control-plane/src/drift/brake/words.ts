// What is said about the brake. Nothing of how many nodes others have: a fleet page belongs to one organization.

import type { Fleet } from "@holdfast/contracts/endpoints/fleet";
import type { Brake, BrakeReason } from "./decide.ts";

const because: Record<BrakeReason, string> = {
  ca_mismatch: "an ingress rejects certificates of this installation's CA",
  control_plane_outage: "the control plane is down, or was until a few minutes ago",
  fleet_lost: "most nodes of this installation were lost within a quarter of an hour",
};

export function presentBrake(brake: Brake): Fleet["brake"] {
  return brake.braked ? { why: brake.why, message: brakeMessage(brake.why) } : null;
}

export function brakeMessage(why: BrakeReason): string {
  return `The control plane is suspected, because ${because[why]}. Notifications to tenants wait until that is over; proven clones are still quarantined.`;
}
