// The VMs of a simulated node: they exist in memory only, and count against an invented capacity. Its guests connect after
// a moment; deadlines are those of the launch.

import type {
  FetchedVmImage,
  LaunchedVm,
  RemovedVmImage,
  ReportedVm,
  TerminatedVm,
  VmCapacity,
  VmEnd,
  VmHostReport,
  VmInventory,
  VmLaunch,
} from "@holdfast/contracts/node/vm-host";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import type { SimulatedNode } from "../executor.ts";

export type SimulatedVms = {
  launch(wanted: VmLaunch): LaunchedVm | { refused: "vm_exists" | "vm_no_capacity" };
  terminate(vmId: string): TerminatedVm;
  inventory(options: { expected: readonly string[] | null; remove: boolean }): VmInventory;
  fetchImage(image: { id: string; sha256: string }): FetchedVmImage;
  removeImage(image: { id: string; sha256: string }): RemovedVmImage;
  report(): VmHostReport;
  /** Called when a VM changes by itself. */
  onChange(listener: () => void): void;
};

/** An image that every simulated host has. */
export const SIMULATED_IMAGE = { id: "simulated", sha256: "0".repeat(64) } as const;

const CONNECTS_AFTER_MS = 200;
const MIB = 1024 ** 2;
const MOST_VMS = 64;

const known = new WeakMap<SimulatedNode, SimulatedVms>();

/** The same for every task type of a node. */
export function simulatedVms(node: SimulatedNode): SimulatedVms {
  const vms = known.get(node) ?? create(node);
  known.set(node, vms);
  return vms;
}

/** Undefined: the node is no VM host. */
export function simulatedVmReport(node: SimulatedNode): VmHostReport | undefined {
  return node.facts.capabilities.includes(VM_HOST) ? simulatedVms(node).report() : undefined;
}

function create(node: SimulatedNode): SimulatedVms {
  const vms = new Map<string, { vm: ReportedVm; timers: NodeJS.Timeout[] }>();
  const fetched = new Map<string, string>();
  const listeners: (() => void)[] = [];
  const changed = () => {
    for (const listener of listeners) listener();
  };
  const physical = capacityOf(node);
  const running = () => [...vms.values()].map(({ vm }) => vm).filter(({ state }) => state !== "ended");
  const free = () => running().reduce(less, physical);

  const end = (vmId: string, why: VmEnd) => {
    const entry = vms.get(vmId);
    if (!entry || entry.vm.state === "ended") return;
    for (const timer of entry.timers) clearTimeout(timer);
    entry.vm = { ...entry.vm, state: "ended", end: why };
    changed();
  };
  const connect = (vmId: string) => {
    const entry = vms.get(vmId);
    if (entry?.vm.state !== "booting") return;
    entry.vm = { ...entry.vm, state: "connected", connected_at: new Date().toISOString() };
    changed();
  };
  const report = (): VmHostReport => ({
    qemu: { version: "simulated", path: "/nonexistent" },
    accelerator: "tcg",
    accelerators: [{ name: "tcg", usable: true, detail: "simulated" }],
    network: { backend: "user", interface: null },
    capacity: { physical, allocatable: physical, free: free(), most_vms: MOST_VMS },
    io_pressure_percent: null,
    images: [
      {
        ...{ ...SIMULATED_IMAGE, file_bytes: MIB, virtual_bytes: MIB, problem: null, fetched: false },
        references: running().filter(({ image_id }) => image_id === SIMULATED_IMAGE.id).length,
      },
      ...[...fetched].map(([id, sha256]) => ({
        ...{ id, sha256, file_bytes: MIB, virtual_bytes: MIB, problem: null, fetched: true },
        references: running().filter(({ image_id }) => image_id === id).length,
      })),
    ],
    image_sources: ["https://images.invalid/"],
    vms: [...vms.values()].map(({ vm }) => vm),
    warm_vms: [],
    problem: null,
  });

  return {
    launch(wanted) {
      const { vm_id, vcpus, memory_mib, ttl_seconds } = wanted;
      if (vms.has(vm_id)) return { refused: "vm_exists" };
      const vm: ReportedVm = {
        ...{ vm_id, state: "booting", end: null, connected_at: null, vcpus, memory_mib },
        ...{ disk_mib: (wanted.disk_gib ?? 0) * 1024, image_id: wanted.image.id },
      };
      const left = less(free(), vm);
      if (Object.values(left).some((value) => value < 0) || running().length >= MOST_VMS)
        return { refused: "vm_no_capacity" };
      const timers = [
        setTimeout(() => connect(vm_id), CONNECTS_AFTER_MS).unref(),
        setTimeout(() => end(vm_id, "ttl"), Math.min(ttl_seconds * 1000, 2 ** 31 - 1)).unref(),
      ];
      vms.set(vm_id, { vm, timers });
      return { vm_id, pid: 1, accelerator: "tcg", network: "user", serial_log: "/nonexistent" };
    },
    terminate(vmId) {
      const existed = vms.get(vmId)?.vm.state !== undefined && vms.get(vmId)?.vm.state !== "ended";
      end(vmId, "terminated");
      const why = vms.get(vmId)?.vm.end ?? null;
      vms.delete(vmId);
      return { vm_id: vmId, existed, end: why, serial_tail: "" };
    },
    inventory({ expected, remove }) {
      const strays = expected === null ? [] : running().filter(({ vm_id }) => !expected.includes(vm_id));
      if (remove) for (const { vm_id } of strays) end(vm_id, "no_lease");
      return {
        report: report(),
        strays: strays.map(({ vm_id }) => ({
          ...{ kind: "vm", name: vm_id, vm_id, action: remove ? "removed" : "would_remove" },
          why: "no lease has this VM",
        })),
      };
    },
    fetchImage({ id, sha256 }) {
      const known = fetched.get(id) === sha256;
      fetched.set(id, sha256);
      changed();
      return { image_id: id, sha256, file_bytes: MIB, fetched: !known, resumed_from_bytes: 0 };
    },
    removeImage({ id, sha256 }) {
      const removed = fetched.get(id) === sha256 && fetched.delete(id);
      changed();
      return { image_id: id, removed, kept: removed ? null : "It is not on this host." };
    },
    report,
    onChange: (listener) => void listeners.push(listener),
  };
}

function capacityOf({ facts }: SimulatedNode): VmCapacity {
  const mib = (bytes: number) => Math.floor(bytes / MIB);
  return { vcpus: facts.cpus, memory_mib: mib(facts.memory_bytes), disk_mib: mib(facts.disk.total_bytes) };
}

function less(capacity: VmCapacity, { vcpus, memory_mib, disk_mib }: VmCapacity): VmCapacity {
  return {
    vcpus: capacity.vcpus - vcpus,
    memory_mib: capacity.memory_mib - memory_mib,
    disk_mib: capacity.disk_mib - disk_mib,
  };
}
