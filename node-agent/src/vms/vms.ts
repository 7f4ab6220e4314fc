// The VMs of this host. What exists is decided by the phase records on disk, one for each VM; memory only holds what can be
// read again. A launch makes its parts in phases (launch-phases.ts); from then on the VM has a lifetime (lifetime.ts).

import { existsSync } from "node:fs";
import type { LaunchedVm, TerminatedVm, VmHostReport, VmStray } from "@holdfast/contracts/node/vm-host";
import { isAlive, type ProcessIdentity } from "@holdfast/kit/processes";
import { TaskFailed, type Vms } from "@holdfast/tasks/executor";
import { runPhases } from "@holdfast/tasks/phases/phases";
import { type Admitted, admit } from "./admit.ts";
import { allocatable, freeOf } from "./capacity.ts";
import { awaitOutput, startCommand } from "./commands.ts";
import { createHostImages, type HostImages } from "./host-images.ts";
import {
  networkProblem,
  type ProbedAccelerators,
  probeAccelerators,
  type VmHostOptions,
  type VmHostSetup,
} from "./host-setup.ts";
import { type KnownVm, launchingVm } from "./known-vm.ts";
import { filesOf, type LaunchContext, launchPhases } from "./launch-phases.ts";
import { createLifetimes, storeOf } from "./lifetime.ts";
import type { GuestRecord } from "./record.generated.ts";
import { hostTagIn, readGuest, readProcess } from "./records.ts";
import { physicalCapacity, reportOf } from "./report.ts";
import { serialPorts } from "./serial.ts";
import { findStrays } from "./strays.ts";
import { withUserData } from "./user-data.ts";

export type VmHost = Vms & {
  report(): VmHostReport;
  /** Adopts what runs, undoes what was cut short, and probes the accelerators. Until then, tasks wait. */
  start(): Promise<void>;
  /** After the clock was moved. */
  checkDeadlines(): void;
  /** VMs go on; nothing is watched any more. */
  stop(): void;
};

type Launch = Parameters<Vms["launch"]>[0];

const CHECK_MS = 60_000;

export function createVmHost(options: VmHostOptions): VmHost {
  const { driver, setup, stateDir, log, onChange } = options;
  const hostTag = hostTagIn(stateDir);
  const vms = new Map<string, KnownVm>();
  const context: LaunchContext = { driver, directories: setup.directories, serialBytes: setup.serialBytes };
  const lifetimes = createLifetimes({ ...options, vms, hostTag, context });
  const physical = physicalCapacity(setup.directories.overlays);
  const all = allocatable(physical, setup.limits);
  const ready = Promise.withResolvers<void>();
  const references = (id: string) => living().filter(({ record }) => record.image.id === id).length;
  const images = createHostImages({ ...options, references, ready: ready.promise });
  let accelerators: ProbedAccelerators | undefined;
  let checks: NodeJS.Timeout | undefined;
  let stopped = false;

  const living = () => [...vms.values()].filter(({ state }) => state !== "ended");
  const free = () =>
    freeOf(
      all,
      living().map(({ record }) => record),
    );
  const filesOfVm = (vmId: string) => filesOf(setup.directories, { hostTag, vmId });
  const strays = (remove: boolean) =>
    findStrays({ ...{ driver, directories: setup.directories, hostTag, remove }, known: new Set(vms.keys()) });
  const launchedOf = ({ record, process }: KnownVm): LaunchedVm => ({
    ...{ vm_id: record.vm_id, pid: process?.pid ?? 0, accelerator: record.accelerator, network: record.network },
    serial_log: filesOfVm(record.vm_id).serialLog,
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
  };

  const launch = async (task: Launch): Promise<LaunchedVm> => {
    await ready.promise;
    const { wanted, taskId } = task;
    const admitted = await admit(wanted, {
      ...{ setup, accelerators, images, task_id: taskId, host_tag: hostTag, boot_id: options.bootId },
      began_at: options.now(),
      present: () => ({ exists: vms.has(wanted.vm_id), count: living().length, free: free() }),
    });
    const vm = launchingVm(admitted.record);
    vms.set(wanted.vm_id, vm);
    onChange();
    try {
      const { process, guest } = await makeVm({ ...options, context, images }, admitted, task);
      vm.guest = guest ?? vm.guest;
      lifetimes.watch(vm, process);
      return launchedOf(vm);
    } catch (error) {
      // What could not be undone is on record: the next check removes it.
      if (storeOf(stateDir, wanted.vm_id).read()) vm.state = "terminating";
      else vms.delete(wanted.vm_id);
      onChange();
      throw error;
    }
  };

  const report = () =>
    reportOf({
      ...{
        setup,
        physical,
        allocatable: all,
        free: free(),
        vms: [...vms.values()],
        problem: problemOf(accelerators, setup),
        accelerators,
      },
      images: images.report(),
    });

  return {
    launch: async (task) => launch({ ...task, wanted: await withUserData(task.wanted, options.takeUserData) }),
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
        const isStray = vm.state === "running" && expected !== null && !expected.includes(vm.record.vm_id);
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

/** Makes the parts of a VM in phases. Rejects when they are undone, or on record for the next check. */
async function makeVm(
  {
    driver,
    setup,
    stateDir,
    log,
    context,
    images,
  }: VmHostOptions & { context: LaunchContext; images: HostImages },
  { record, image }: Admitted,
  { wanted, enter }: Launch,
): Promise<{ process: ProcessIdentity; guest: GuestRecord | undefined }> {
  const verifyBase = (process: ProcessIdentity) => {
    images.verifyUnchanged(image);
    if (!driver.hasOpen(process, image))
      throw new TaskFailed("vm_image_changed", `${image.path} was replaced while a VM was launched from it.`);
  };
  await runPhases({
    phases: launchPhases,
    context: { ...context, launch: { record, wanted, interface: setup.network.interface, verifyBase } },
    store: storeOf(stateDir, record.vm_id),
    enter: (phase) => {
      log.info("launching a VM", { vm_id: record.vm_id, stage: phase.replaceAll("_", "-") });
      enter(phase);
    },
  });
  const { directory } = filesOf(setup.directories, { hostTag: record.host_tag, vmId: record.vm_id });
  const process = readProcess(directory);
  if (!process) throw new TaskFailed("vm_qemu_failed", "QEMU is gone.");
  return { process, guest: readGuest(directory) };
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
  if (vm.state === "running" && process && graceMs > 0) {
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
