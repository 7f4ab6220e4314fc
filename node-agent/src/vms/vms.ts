// The VMs of this host. What exists is decided by the phase records on disk, one for each VM; memory only holds what can be
// read again. A launch makes its parts in phases (launch-phases.ts); from then on the VM has a lifetime (lifetime.ts).

import { existsSync } from "node:fs";
import type { LaunchedVm, TerminatedVm, VmHostReport, VmStray } from "@holdfast/contracts/node/vm-host";
import { isAlive } from "@holdfast/kit/processes";
import { TaskFailed, type Vms } from "@holdfast/tasks/executor";
import { allocatable, freeOf } from "./capacity.ts";
import { awaitOutput, startCommand } from "./commands.ts";
import { createHostImages } from "./host-images.ts";
import {
  networkProblem,
  type ProbedAccelerators,
  probeAccelerators,
  type VmHostOptions,
  type VmHostSetup,
} from "./host-setup.ts";
import type { KnownVm } from "./known-vm.ts";
import { filesOf, type LaunchContext } from "./launch-phases.ts";
import { createLaunches } from "./launches.ts";
import { createLifetimes } from "./lifetime.ts";
import { hostTagIn } from "./records.ts";
import { physicalCapacity, reportOf } from "./report.ts";
import { serialPorts } from "./serial.ts";
import { findStrays } from "./strays.ts";
import { withUserData } from "./user-data.ts";
import { createWarmPool } from "./warm-pool.ts";

export type VmHost = Vms & {
  report(): VmHostReport;
  /** Adopts what runs, undoes what was cut short, and probes the accelerators. Until then, tasks wait. */
  start(): Promise<void>;
  /** After the clock was moved. */
  checkDeadlines(): void;
  /** VMs go on; nothing is watched any more. */
  stop(): void;
};

const CHECK_MS = 60_000;

export function createVmHost(given: VmHostOptions): VmHost {
  const onChange = () => {
    given.onChange();
    if (isReady && !stopped) void pool.keep();
  };
  const options: VmHostOptions = { ...given, onChange };
  const { driver, setup, stateDir, log } = options;
  const hostTag = hostTagIn(stateDir);
  const vms = new Map<string, KnownVm>();
  const context: LaunchContext = { driver, directories: setup.directories, serialBytes: setup.serialBytes };
  const lifetimes = createLifetimes({ ...options, vms, hostTag, context });
  const physical = physicalCapacity(setup.directories.overlays);
  const all = allocatable(physical, setup.limits);
  const ready = Promise.withResolvers<void>();
  // A warm VM does not keep an image: it goes with it.
  const references = (id: string) =>
    living().filter(({ record }) => record.image.id === id && !record.warm).length;
  const images = createHostImages({ ...options, references, ready: ready.promise });
  let accelerators: ProbedAccelerators | undefined;
  let checks: NodeJS.Timeout | undefined;
  let isReady = false;
  let stopped = false;

  const living = () => [...vms.values()].filter(({ state }) => state !== "ended");
  const freeBut = (but: KnownVm | undefined) => {
    const records = living().flatMap((vm) => (vm === but ? [] : vm.record));
    return { count: records.length, free: freeOf(all, records) };
  };
  const filesOfVm = (vmId: string) => filesOf(setup.directories, { hostTag, vmId });
  const strays = (remove: boolean) =>
    findStrays({ ...{ driver, directories: setup.directories, hostTag, remove }, known: new Set(vms.keys()) });
  const launchedOf = ({ record, process }: KnownVm): LaunchedVm => ({
    ...{ vm_id: record.vm_id, pid: process?.pid ?? 0, accelerator: record.accelerator, network: record.network },
    serial_log: filesOfVm(record.vm_id).serialLog,
  });

  const launches = createLaunches({
    ...{ ...options, vms, hostTag, context, images, lifetimes, free: freeBut },
    accelerators: () => accelerators,
  });
  const pool = createWarmPool({
    ...{ wishes: setup.warm, images: images.report, boot: launches.boot, now: options.now, log },
    warm: () => living().filter(({ record, state }) => record.warm && state !== "terminating"),
    isCurrent: ({ network, uplink, accelerator }) =>
      network === setup.network.backend &&
      uplink === (network === "user" && setup.network.uplink) &&
      accelerator === accelerators?.selected,
    end: (vm) => lifetimes.end(vm, "terminated"),
  });

  const present = (vmId: string): KnownVm => {
    const vm = vms.get(vmId);
    if (!vm) throw new TaskFailed("vm_gone", "The host does not have it.");
    return vm;
  };

  /** What could not be removed before, and what belongs to nothing. */
  const check = async () => {
    await images.refresh();
    for (const vm of living().filter(({ state }) => state === "terminating"))
      await lifetimes.end(vm, vm.end ?? "terminated").catch(() => undefined);
    for (const vm of living()) await lifetimes.keepConnected(vm);
    for (const { action, kind, name, why } of await strays(true))
      if (action === "removed") log.warn("removed what no VM had", { kind, name, why });
    if (isReady) await pool.keep();
  };

  const report = () =>
    reportOf({
      ...{
        setup,
        physical,
        allocatable: all,
        free: freeBut(undefined).free,
        vms: [...vms.values()],
        problem: problemOf(accelerators, setup),
        accelerators,
      },
      images: images.report(),
    });

  return {
    async launch(task) {
      const wanted = await withUserData(task.wanted, options.takeUserData);
      await ready.promise;
      return launchedOf(await pool.during(() => launches.launch({ ...task, wanted }, pool)));
    },
    report,
    ...{ fetchImage: images.fetchImage, removeImage: images.removeImage },
    async recover(taskId) {
      await ready.promise;
      const vm = living().find(({ record, state }) => record.task_id === taskId && state === "running");
      return vm && launchedOf(vm);
    },
    async terminate(task) {
      await ready.promise;
      const vm = vms.get(task.vmId);
      if (!vm) return { vm_id: task.vmId, existed: false, end: null, serial_tail: "" };
      const terminated = await terminateVm(vm, task, lifetimes.end);
      vms.delete(task.vmId);
      onChange();
      return terminated;
    },
    async exec(command) {
      await ready.promise;
      startCommand(present(command.vm_id), filesOfVm(command.vm_id).directory, command);
    },
    async output(query, signal) {
      await ready.promise;
      return awaitOutput(present(query.vm_id), filesOfVm(query.vm_id).directory, { query, signal });
    },
    ...serialPorts({ ready: ready.promise, vms, filesOf: filesOfVm }),
    async inventory({ expected, remove }) {
      await ready.promise;
      const found: VmStray[] = [];
      for (const vm of living()) {
        const isStray =
          vm.state === "running" && !vm.record.warm && expected !== null && !expected.includes(vm.record.vm_id);
        if (isStray) found.push(await withoutLease(vm, remove, lifetimes.end));
      }
      found.push(...(await strays(remove)));
      return { report: report(), strays: found };
    },
    async start() {
      await lifetimes.adoptAll();
      accelerators = await probeAccelerators(driver, setup.accelerator, options.family);
      log.info("ready for VMs", { accelerator: accelerators.selected, qemu: setup.qemu.version });
      ready.resolve();
      if (stopped) return;
      checks = setInterval(() => void check().catch(() => undefined), CHECK_MS).unref();
      await check();
      isReady = true;
      onChange();
    },
    checkDeadlines: () => {
      for (const vm of living()) lifetimes.schedule(vm);
    },
    stop() {
      stopped = true;
      clearInterval(checks);
      lifetimes.stop();
    },
  };
}

function problemOf(accelerators: ProbedAccelerators | undefined, { network }: VmHostSetup): string | null {
  return accelerators?.selected === null
    ? `No guest boots with QEMU here: ${accelerators.probed.at(-1)?.detail ?? ""}`.slice(0, 400)
    : (networkProblem(network, existsSync) ?? null);
}

async function terminateVm(
  vm: KnownVm,
  { graceMs, enter, signal }: Parameters<Vms["terminate"]>[0],
  end: ReturnType<typeof createLifetimes>["end"],
): Promise<TerminatedVm> {
  const { process } = vm;
  const existed = vm.state !== "ended";
  if (vm.state === "running" && process && graceMs > 0 && !vm.record.warm) {
    enter("powering_down");
    await vm.watch?.powerDown().catch(() => undefined);
    // Not a child of this process, if it was adopted: there is no event to wait for.
    for (const until = performance.now() + graceMs; performance.now() < until && isAlive(process); ) {
      signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  enter("removing");
  try {
    await end(vm, "terminated");
  } catch (error) {
    throw new TaskFailed("vm_not_removed", (error as Error).message);
  }
  return { vm_id: vm.record.vm_id, existed, end: vm.end, serial_tail: vm.tail };
}

async function withoutLease(
  vm: KnownVm,
  remove: boolean,
  end: ReturnType<typeof createLifetimes>["end"],
): Promise<VmStray> {
  const { vm_id } = vm.record;
  const stray = { kind: "vm", name: vm_id, vm_id } as const;
  if (!remove) return { ...stray, action: "would_remove", why: "no lease has this VM" };
  try {
    await end(vm, "no_lease");
    return { ...stray, action: "removed", why: "no lease had this VM" };
  } catch (error) {
    return { ...stray, action: "kept", why: (error as Error).message.slice(0, 400) };
  }
}
