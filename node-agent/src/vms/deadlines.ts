// When a VM has to end, and why: a function of its record, its guest and the time. The agent alone decides it, so a VM ends
// in time also while the control plane is unreachable.

import type { VmEnd } from "@holdfast/contracts/node/vm-host";
import type { GuestRecord, VmRecord } from "./record.generated.ts";

type Limits = Pick<VmRecord, "began_at" | "ttl_seconds" | "connect_within_seconds" | "disconnect_grace_seconds">;
type Guest = Pick<GuestRecord, "connected_at" | "disconnected_at">;

/** The next one; times are seconds since the boot of the host. */
export function nextDeadline(limits: Limits, guest: Guest): { end: VmEnd; at: number } {
  const { began_at: began, connect_within_seconds: connect, disconnect_grace_seconds: grace } = limits;
  const deadlines: { end: VmEnd; at: number }[] = [{ end: "ttl", at: began + limits.ttl_seconds }];
  if (guest.connected_at === null && connect !== null)
    deadlines.push({ end: "connect_deadline", at: began + connect });
  if (guest.disconnected_at !== null && grace !== null)
    deadlines.push({ end: "disconnected", at: guest.disconnected_at + grace });
  return deadlines.reduce((first, one) => (one.at < first.at ? one : first));
}
