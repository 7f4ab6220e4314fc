// Launches VMs: for a lease from the beginning or by a warm VM, and ahead of leases.

import type { VmCapacity, VmLaunch } from "@holdfast/contracts/node/vm-host";
import { sizeOfProfile } from "@holdfast/contracts/vm/profiles";
import type { ProcessIdentity } from "@holdfast/kit/processes";
import { uuidv7 } from "@holdfast/kit/uuid";
import { TaskFailed, type Vms } from "@holdfast/tasks/executor";
import { runPhases } from "@holdfast/tasks/phases/phases";
import { type Admitted, admit } from "./admit.ts";
import { claimWarm, isClaimable } from "./claim-warm.ts";
import type { HostImages } from "./host-images.ts";
import type { ProbedAccelerators, VmHostOptions } from "./host-setup.ts";
import { type KnownVm, launchingVm } from "./known-vm.ts";
import { filesOf, type LaunchContext, launchPhases } from "./launch-phases.ts";
import { type Lifetimes, storeOf } from "./lifetime.ts";
import type { GuestRecord, VmRecord } from "./record.generated.ts";
import { readGuest, readProcess } from "./records.ts";
import type { WarmPool, WarmWish } from "./warm-pool.ts";

export type Launch = Parameters<Vms["launch"]>[0];

/** A day: what its image's services do at each boot is not left undone for longer. */
const WARM_TTL_SECONDS = 86_400;

export function createLaunches(
  options: VmHostOptions & {
    vms: Map<string, KnownVm>;
    hostTag: string;
    context: LaunchContext;
    images: HostImages;
    lifetimes: Lifetimes;
    accelerators: () => ProbedAccelerators | undefined;
    /** What VMs leave free, this one not counted. */
    free: (but: KnownVm | undefined) => { count: number; free: VmCapacity };
  },
) {
  const { vms, hostTag, images, lifetimes, setup, stateDir, onChange } = options;

  const admitted = (wanted: VmLaunch, taskId: string) =>
    admit(wanted, {
      ...{ setup, accelerators: options.accelerators(), images, task_id: taskId, host_tag: hostTag },
      ...{ boot_id: options.bootId, began_at: options.now() },
      present: () => {
        const same = vms.get(wanted.vm_id);
        const warm = same?.record.warm ? same : undefined;
        return { exists: same !== undefined && !warm, ...options.free(warm) };
      },
    });

  const make = async ({ record, image }: Admitted, task: Pick<Launch, "wanted" | "enter">): Promise<KnownVm> => {
    const vm = launchingVm(record);
    vms.set(record.vm_id, vm);
    onChange();
    return orNothing(vm, async () => {
      const { process, guest } = await makeVm(options, { record, image }, task);
      vm.guest = guest ?? vm.guest;
      lifetimes.watch(vm, process);
    });
  };

  const claim = (vm: KnownVm, record: VmRecord, { wanted, enter }: Launch): Promise<KnownVm> =>
    orNothing(vm, async () => {
      const files = filesOf(setup.directories, { hostTag, vmId: record.vm_id });
      try {
        await claimWarm(vm, { record, wanted, enter }, { store: storeOf(stateDir, record.vm_id), files });
      } catch (error) {
        await lifetimes.end(vm, "terminated").catch(() => undefined);
        throw error instanceof TaskFailed ? error : new TaskFailed("vm_qemu_failed", (error as Error).message);
      }
      lifetimes.begin(vm);
    });

  const orNothing = async (vm: KnownVm, work: () => Promise<void>): Promise<KnownVm> => {
    const { vm_id: vmId } = vm.record;
    try {
      await work();
      return vm;
    } catch (error) {
      // What could not be undone is on record: the next check removes it.
      if (storeOf(stateDir, vmId).read()) vm.state = "terminating";
      else vms.delete(vmId);
      onChange();
      throw error;
    }
  };

  return {
    /** Those that were booted ahead give their room, one after the other. */
    async launch(task: Launch, pool: Pick<WarmPool, "makeRoom">): Promise<KnownVm> {
      const { wanted, taskId } = task;
      for (;;) {
        let found: Admitted;
        try {
          found = await admitted(wanted, taskId);
        } catch (error) {
          if ((error as TaskFailed).code === "vm_no_capacity" && (await pool.makeRoom())) continue;
          throw error;
        }
        const warm = vms.get(wanted.vm_id);
        if (!warm) return make(found, task);
        if (isClaimable(warm, found.record)) return claim(warm, found.record, task);
        await lifetimes.end(warm, "terminated");
      }
    },
    async boot({ imageId, profile }: WarmWish, sha256: string): Promise<KnownVm> {
      const { vcpus, memory_mib, disk_gib } = sizeOfProfile[profile];
      const wanted: VmLaunch = {
        ...{ vm_id: uuidv7(), image: { id: imageId, sha256 }, vcpus, memory_mib, disk_gib, accelerator: "auto" },
        ...{ hostname: "warm", user_data: "", ttl_seconds: WARM_TTL_SECONDS },
        ...{ connect_within_seconds: null, disconnect_grace_seconds: null },
      };
      const { record, image } = await admitted(wanted, "none");
      return make({ image, record: { ...record, warm: true } }, { wanted, enter: () => undefined });
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
  { wanted, enter }: Pick<Launch, "wanted" | "enter">,
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
