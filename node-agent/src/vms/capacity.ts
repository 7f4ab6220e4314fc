// What VMs may use of this host, and how much of it is left. Pure.

import type { VmCapacity } from "@holdfast/contracts/node/vm-host";

/** Of the owner; undefined: the usual share of the machine. */
export type CapacityLimits = {
  vcpus?: number | undefined;
  memoryMib?: number | undefined;
  diskMib?: number | undefined;
};

/** The rest is for the host itself. */
const PART_OF_MEMORY = 0.8;
const PART_OF_DISK = 0.9;

export function allocatable(physical: VmCapacity, limits: CapacityLimits): VmCapacity {
  return {
    vcpus: limits.vcpus ?? physical.vcpus,
    memory_mib: Math.min(
      limits.memoryMib ?? Math.floor(physical.memory_mib * PART_OF_MEMORY),
      physical.memory_mib,
    ),
    // Overlays are as small as what guests write: an owner may promise more than there is.
    disk_mib: limits.diskMib ?? Math.floor(physical.disk_mib * PART_OF_DISK),
  };
}

/** Never negative, although an owner may lower the limits below what is in use. */
export function freeOf(all: VmCapacity, used: readonly VmCapacity[]): VmCapacity {
  const sum = (key: keyof VmCapacity) => used.reduce((total, one) => total + one[key], 0);
  const left = (key: keyof VmCapacity) => Math.max(0, all[key] - sum(key));
  return { vcpus: left("vcpus"), memory_mib: left("memory_mib"), disk_mib: left("disk_mib") };
}

/** Undefined: it fits. Otherwise what is missing, for a person. */
export function whyNotFitting(free: VmCapacity, wanted: VmCapacity): string | undefined {
  const missing = [
    ["vCPUs", free.vcpus, wanted.vcpus],
    ["MiB of memory", free.memory_mib, wanted.memory_mib],
    ["MiB of disk", free.disk_mib, wanted.disk_mib],
  ] as const;
  const first = missing.find(([, has, needs]) => needs > has);
  return first && `It needs ${first[2]} ${first[0]}; ${first[1]} are free.`;
}
