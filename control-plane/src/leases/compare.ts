// Compares what a host reports about its VMs with the leases that the host has: what each lease learns from it, and which VMs
// have no lease. Pure. A host that reports nothing about VMs changes nothing: unknown is not missing.

import type { LeaseState } from "@holdfast/contracts/endpoints/leases";
import type { ReportedVm } from "@holdfast/contracts/node/vm-host";
import { type AboutLease, leaseReason, reasonOfEnd } from "./reasons.ts";
import { MISSING_AFTER_SECONDS } from "./settings.ts";
import type { Happened } from "./transitions/apply.ts";
import { statesChangedBy } from "./transitions/table.ts";

export type FollowedLease = AboutLease & {
  status: LeaseState;
  vm_id: string;
  launch_settled: boolean;
  booted_at: Date | null;
  connected_at: Date | null;
  disconnected_at: Date | null;
};

export type Comparison = {
  /** One after the other: a lease occurs in each at most once. */
  rounds: [connections: Happened[], rest: Happened[]];
  /** Ids of VMs that no lease of this host has. */
  strays: string[];
};

export function compareReport(
  vms: readonly Pick<ReportedVm, "vm_id" | "state" | "end">[],
  leases: readonly FollowedLease[],
  heartbeatAt: Date,
): Comparison {
  const reported = new Map(vms.map((vm) => [vm.vm_id, vm]));
  const connections: Happened[] = [];
  const rest: Happened[] = [];
  for (const lease of leases) {
    const vm = reported.get(lease.vm_id);
    const about = { leaseId: lease.id, vmId: lease.vm_id };
    if (vm === undefined) {
      if (isMissing(lease, heartbeatAt))
        rest.push({ ...about, event: "vm_missing", reason: leaseReason("vm_missing", lease) });
      continue;
    }
    const isAway = lease.connected_at === null || lease.disconnected_at !== null;
    const wasConnected = vm.state === "connected" || (vm.state === "disconnected" && lease.connected_at === null);
    if (wasConnected && isAway) connections.push({ ...about, event: "guest_connected" });
    if (vm.state === "disconnected" && lease.disconnected_at === null)
      rest.push({ ...about, event: "guest_disconnected" });
    if (isGoing(vm) && statesChangedBy("vm_exited").includes(lease.status))
      rest.push({ ...about, event: "vm_exited", reason: leaseReason(endOf(vm), lease) });
  }
  const own = new Set(leases.map(({ vm_id }) => vm_id));
  // Of one that has ended, nothing is left on the host.
  const strays = vms.filter(({ vm_id, state }) => state !== "ended" && !own.has(vm_id)).map(({ vm_id }) => vm_id);
  return { rounds: [connections, rest], strays };
}

const isGoing = ({ state }: Pick<ReportedVm, "state">) => state === "terminating" || state === "ended";

const endOf = ({ end }: Pick<ReportedVm, "end">) => (end === null ? "removed_on_host" : reasonOfEnd[end]);

/** Its launch was settled well before the heartbeat, which therefore must list it. */
function isMissing(
  { status, booted_at, connected_at, launch_settled }: FollowedLease,
  heartbeatAt: Date,
): boolean {
  if (!launch_settled || !statesChangedBy("vm_missing").includes(status)) return false;
  const known = booted_at ?? connected_at;
  return known !== null && heartbeatAt.getTime() - known.getTime() > MISSING_AFTER_SECONDS * 1000;
}
