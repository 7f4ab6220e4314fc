// A VM host as people see it. Pure.

import type { VmHost } from "@holdfast/contracts/endpoints/hosts";
import type { NodeStatus } from "@holdfast/contracts/node/protocol";
import type { VmCapacity, VmStray } from "@holdfast/contracts/node/vm-host";
import type { Freshness } from "../nodes/presence/freshness.ts";
import { type HostRow, toView } from "./hosts-view.ts";
import { freeOf, type HostView, type PlacementPolicy, type Share } from "./place.ts";
import type { CatalogueImage } from "./resolve.ts";

export function toHost(
  row: HostRow,
  catalogue: readonly CatalogueImage[],
  policy: PlacementPolicy & { staleAfterSeconds: number },
): VmHost {
  const view = toView(row, policy.staleAfterSeconds);
  const free = freeOf(view);
  const { report } = row;
  const problem = whyNotSchedulable(view, policy);
  return {
    id: row.node_id,
    name: row.name,
    platform: `${row.os?.family ?? "unknown"}/${row.os?.flavour ?? "unknown"}/${view.arch}`,
    status: row.node_status as NodeStatus,
    connection: connectionOf[view.freshness],
    enabled: row.enabled,
    schedulable: problem === null,
    not_schedulable: problem,
    accelerator: view.accelerator,
    accelerators: report?.accelerators ?? [],
    qemu_version: report?.qemu.version ?? null,
    network: report ? [report.network.backend, report.network.interface].filter(Boolean).join(" ") : null,
    cpu_free: free.vcpus,
    ram_free_mb: free.memoryMib,
    capacity: {
      physical: amountOf(report?.capacity.physical),
      allocatable: amount(view.allocatable),
      reserved: amount(view.reserved),
      free: amount(free),
    },
    leases: row.leases,
    warm_vms: (report?.warm_vms ?? []).map(({ vm_id, image_id, vcpus, memory_mib }) => ({
      ...{ vm_id, image_id, vcpus, memory_mib },
    })),
    most_vms: Math.min(view.mostVms, policy.mostPerHost),
    io_pressure_percent: report?.io_pressure_percent ?? null,
    images: (report?.images ?? []).map(({ id, sha256, references, fetched, problem: why }) => ({
      ...{ id, sha256, references, problem: why, fetched: fetched ?? false },
      in_catalogue: catalogue.some((one) => one.id === id && one.sha256 === sha256 && one.retired_at === null),
    })),
    image_sources: report?.image_sources ?? [],
    heartbeat_at: row.heartbeat_at?.toISOString() ?? null,
    inventory_at: row.inventory_at?.toISOString() ?? null,
    strays: (row.strays ?? []) as VmStray[],
  };
}

const connectionOf: Record<Freshness, VmHost["connection"]> = {
  never: "never",
  online: "online",
  stale: "stale",
  offline: "offline",
  // Received while the database's clock was wrong.
  in_future: "stale",
};

/** Null: it can take a lease. What has to be repaired first comes first. */
function whyNotSchedulable(host: HostView, policy: PlacementPolicy): string | null {
  if (host.standing !== "active")
    return `The node is ${host.standing} and takes no new work. Run \`holdfast node reactivate ${host.name}\`.`;
  if (!host.enabled) return `The host is disabled (enabled=false). Run \`holdfast host enable ${host.name}\`.`;
  if (host.freshness !== "online")
    return `Its heartbeat does not reach the control plane. Check it with \`holdfast node show ${host.name}\`.`;
  if (host.problem !== null) return `It cannot launch VMs: ${host.problem}`;
  if (host.accelerator === null) return "It is still finding out which accelerator works. No action is needed.";
  const free = freeOf(host);
  const most = Math.min(host.mostVms, policy.mostPerHost);
  if (host.leases >= most) return `It has ${host.leases} VMs, of at most ${most}. Wait until one ends.`;
  if (free.vcpus <= 0 || free.memoryMib <= 0 || free.diskMib <= 0)
    return (
      `It has no free capacity: cpu_free=${free.vcpus}, ram_free_mb=${free.memoryMib}, disk_free_mb=${free.diskMib}. ` +
      "Wait until a lease on it ends, or raise what its agent allows VMs to use."
    );
  return null;
}

const amount = ({ vcpus, memoryMib, diskMib }: Share) => ({ vcpus, memory_mib: memoryMib, disk_mib: diskMib });
const amountOf = (capacity: VmCapacity | undefined) => ({
  vcpus: capacity?.vcpus ?? 0,
  memory_mib: capacity?.memory_mib ?? 0,
  disk_mib: capacity?.disk_mib ?? 0,
});
