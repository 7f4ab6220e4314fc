// From the start of a VM's process to its end: watches it, ends it at its deadlines, and adopts it after a restart of the
// agent. Every VM ends by `end`, whoever wants it gone, and what cannot be removed is tried again.

import type { VmEnd } from "@holdfast/contracts/node/vm-host";
import { isAlive, type ProcessIdentity } from "@holdfast/kit/processes";
import { filePhaseStore, recordedOperations, removeUnfinishedWrites } from "@holdfast/tasks/phases/file-store";
import { undoPhases } from "@holdfast/tasks/phases/phases";
import { takeLine } from "./commands.ts";
import { nextDeadline } from "./deadlines.ts";
import { watchGuest } from "./guest-watch.ts";
import type { VmHostOptions } from "./host-setup.ts";
import { type KnownVm, launchingVm } from "./known-vm.ts";
import { filesOf, type LaunchContext, launchPhases } from "./launch-phases.ts";
import { readGuest, readProcess, readVmRecord, serialTail, writeGuest } from "./records.ts";

export type Lifetimes = {
  watch(vm: KnownVm, process: ProcessIdentity): void;
  /** The life of a VM that is watched already. */
  begin(vm: KnownVm): void;
  /** Anew, after the clock was moved. */
  schedule(vm: KnownVm): void;
  /** Rejects if something of the VM is left. */
  end(vm: KnownVm, why: VmEnd): Promise<void>;
  /** Connects a running VM again if its uplink has ended. */
  keepConnected(vm: KnownVm): Promise<void>;
  /** The VMs that an earlier agent process left, whatever it was doing: each runs on, or nothing is left of it. */
  adoptAll(): Promise<void>;
  stop(): void;
};

const MOST_TIMER_MS = 2 ** 31 - 1;
/** Guests get this long to connect again after a restart of the agent, before their grace period begins. */
const RECONNECT_SECONDS = 30;

/** VMs with a record: complete ones, and those that a crash cut short. */
export function recordedVms(stateDir: string): string[] {
  return recordedOperations(stateDir).flatMap((operation) => /^vm-(.+)$/.exec(operation)?.[1] ?? []);
}

export function storeOf(stateDir: string, vmId: string) {
  return filePhaseStore(stateDir, `vm-${vmId}`);
}

export function createLifetimes(
  options: VmHostOptions & { vms: Map<string, KnownVm>; hostTag: string; context: LaunchContext },
): Lifetimes {
  const { vms, hostTag, context, driver, log, onChange, stateDir } = options;
  let stopped = false;
  const filesOfVm = (vmId: string) => filesOf(context.directories, { hostTag, vmId });

  const schedule = (vm: KnownVm) => {
    clearTimeout(vm.timer);
    if (stopped || vm.state !== "running") return;
    const { end: why, at } = nextDeadline(vm.record, vm.guest);
    const waitMs = Math.max(0, (at - options.now()) * 1000);
    const onTime = () => {
      if (options.now() < at) schedule(vm);
      else void end(vm, why).catch(() => undefined);
    };
    vm.timer = setTimeout(onTime, Math.min(waitMs, MOST_TIMER_MS)).unref();
  };

  const watch = (vm: KnownVm, process: ProcessIdentity) => {
    const { vm_id: vmId } = vm.record;
    const files = filesOfVm(vmId);
    vm.state = "running";
    vm.process = process;
    vm.watch = watchGuest({
      ...{ files, process, record: () => vm.guest, now: options.now },
      save: (record) => {
        writeGuest(files.directory, record);
        vm.guest = record;
        schedule(vm);
        onChange();
      },
      onLine: (line) => {
        try {
          takeLine(files.directory, line);
        } catch (error) {
          log.error("output of a guest could not be kept", { vm_id: vmId, error: (error as Error).message });
        }
        for (const listener of [...vm.listeners]) listener();
      },
      onPaused: () => {
        if (vm.record.warm !== true) return;
        vm.isPaused = true;
        onChange();
      },
      onGone: (why) => void end(vm, why).catch(() => undefined),
      log: (message, error) => log.debug(message, { vm_id: vmId, error: (error as Error).message }),
    });
    schedule(vm);
    onChange();
  };
  const begin = (vm: KnownVm) => {
    vm.state = "running";
    schedule(vm);
    onChange();
  };

  const end: Lifetimes["end"] = (vm, why) => {
    vm.ending ??= remove(vm, why).finally(() => {
      vm.ending = undefined;
    });
    return vm.ending;
  };
  const remove = async (vm: KnownVm, why: VmEnd) => {
    if (vm.state === "ended") return;
    const { vm_id: vmId } = vm.record;
    vm.state = "terminating";
    vm.end ??= why;
    clearTimeout(vm.timer);
    vm.watch?.stop();
    vm.tail ||= serialTail(filesOfVm(vmId).serialLog);
    log.info("a VM ends", { vm_id: vmId, end: vm.end });
    for (const listener of [...vm.listeners]) listener();
    onChange();
    try {
      await undoPhases({ phases: launchPhases, context, store: storeOf(stateDir, vmId) });
    } catch (error) {
      log.error("part of a VM could not be removed", { vm_id: vmId, error: (error as Error).message });
      throw error;
    }
    vm.state = "ended";
    // No lease and no task knows of it.
    if (vm.record.warm) vms.delete(vmId);
    onChange();
  };

  /** By tag, pid and start time: a pid alone may be another process by now. */
  const isOurs = (vmId: string, process: ProcessIdentity) =>
    isAlive(process) &&
    driver.processes(hostTag).some((one) => one.main && one.vmId === vmId && one.process.pid === process.pid);

  const keepConnected = async ({ record, state, process }: KnownVm) => {
    if (record.uplink !== true || state !== "running" || !process) return;
    const { vm_id: vmId } = record;
    try {
      await driver.connectUplink({ hostTag, vmId, process, files: filesOfVm(vmId) });
    } catch (error) {
      log.error("a VM has no network", { vm_id: vmId, error: (error as Error).message });
    }
  };

  const adopt = async (vmId: string) => {
    const store = storeOf(stateDir, vmId);
    const journal = store.read();
    const record = readVmRecord(journal);
    if (!journal || !record) {
      await undoPhases({ phases: launchPhases, context, store });
      return;
    }
    const { directory } = filesOfVm(vmId);
    const vm = launchingVm(record, readGuest(directory));
    vms.set(vmId, vm);
    const process = readProcess(directory);
    if (journal.state !== "made") {
      await end(vm, "process_gone");
      vms.delete(vmId);
    } else if (process && record.boot_id === options.bootId && isOurs(vmId, process)) {
      const { connected_at, disconnected_at } = vm.guest;
      if (connected_at !== null)
        vm.guest = { ...vm.guest, disconnected_at: disconnected_at ?? options.now() + RECONNECT_SECONDS };
      watch(vm, process);
      await keepConnected(vm);
    } else await end(vm, "process_gone");
  };

  return {
    ...{ watch, begin, schedule, end, keepConnected },
    async adoptAll() {
      removeUnfinishedWrites(stateDir);
      for (const vmId of recordedVms(stateDir))
        await adopt(vmId).catch((error: Error) => {
          log.error("a VM of an earlier agent could not be removed", { vm_id: vmId, error: error.message });
        });
    },
    stop() {
      stopped = true;
      for (const vm of vms.values()) {
        clearTimeout(vm.timer);
        vm.watch?.stop();
      }
    },
  };
}
