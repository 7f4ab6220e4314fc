// What a heartbeat reports about a VM host.

import { readFileSync, statfsSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { dirname } from "node:path";
import type {
  ReportedVm,
  VmCapacity,
  VmHostReport,
  VmImage,
  VmState,
  WarmVm,
} from "@holdfast/contracts/node/vm-host";
import { exhaustive } from "@holdfast/kit/exhaustive";
import type { ProbedAccelerators, VmHostSetup } from "./host-setup.ts";
import type { KnownVm } from "./known-vm.ts";

const MIB = 1024 ** 2;
const MOST_REPORTED = 512;
const MOST_WARM = 64;

export function reportOf(known: {
  setup: VmHostSetup;
  physical: VmCapacity;
  allocatable: VmCapacity;
  free: VmCapacity;
  accelerators: ProbedAccelerators | undefined;
  images: VmImage[];
  vms: readonly KnownVm[];
  problem: string | null;
}): VmHostReport {
  const { setup, accelerators, physical, allocatable, free } = known;
  return {
    qemu: setup.qemu,
    accelerator: accelerators?.selected ?? null,
    accelerators: (accelerators?.probed ?? []).map((one) => ({ ...one, detail: one.detail.slice(0, 400) })),
    network: { backend: setup.network.backend, interface: setup.network.interface ?? null },
    capacity: { physical, allocatable, free, most_vms: setup.mostVms },
    io_pressure_percent: ioPressure(),
    images: known.images,
    image_sources: [...setup.imageSources],
    vms: known.vms
      .filter(({ record }) => !record.warm)
      .slice(0, MOST_REPORTED)
      .map(reportedVm),
    warm_vms: known.vms.filter(isWaiting).slice(0, MOST_WARM).map(warmVm),
    problem: known.problem,
  };
}

const isWaiting = ({ record, state, isPaused }: KnownVm) =>
  record.warm === true && state === "running" && isPaused === true;

function warmVm({ record }: KnownVm): WarmVm {
  const { vm_id, vcpus, memory_mib, disk_mib, accelerator, image } = record;
  return {
    ...{ vm_id, vcpus, memory_mib, disk_mib, accelerator, image_id: image.id, image_sha256: image.sha256 },
  };
}

function reportedVm(vm: KnownVm): ReportedVm {
  const { vm_id, vcpus, memory_mib, disk_mib, image } = vm.record;
  return {
    ...{ vm_id, vcpus, memory_mib, disk_mib, image_id: image.id },
    ...{ state: stateOf(vm), end: vm.end, connected_at: vm.guest.connected_at },
  };
}

function stateOf({ state, guest }: Pick<KnownVm, "state" | "guest">): VmState {
  switch (state) {
    case "launching":
    case "terminating":
    case "ended":
      return state;
    case "running":
      if (guest.connected_at === null) return "booting";
      return guest.disconnected_at === null ? "connected" : "disconnected";
    default:
      return exhaustive(state);
  }
}

export function physicalCapacity(overlays: string): VmCapacity {
  return {
    vcpus: availableParallelism(),
    memory_mib: Math.floor(totalmem() / MIB),
    disk_mib: Math.floor(diskBytes(overlays) / MIB),
  };
}

/** Of the nearest directory that exists. */
function diskBytes(path: string): number {
  try {
    const { bsize, blocks } = statfsSync(path);
    return bsize * blocks;
  } catch {
    return path === dirname(path) ? 0 : diskBytes(dirname(path));
  }
}

/** Null: the kernel does not measure it. */
function ioPressure(): number | null {
  try {
    const found = /^some avg10=([0-9.]+)/.exec(readFileSync("/proc/pressure/io", "utf8"))?.[1];
    return found === undefined ? null : Number(found);
  } catch {
    return null;
  }
}
