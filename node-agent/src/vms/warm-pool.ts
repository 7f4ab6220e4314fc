// VMs that are booted ahead of leases. Each has booted as far as it can without its seed, and is paused there, so it uses memory and no
// processor, and nothing in it depends on a lease. A launch with its id takes it (claim-warm.ts). What exists is decided by the
// phase records, as for all VMs; this decides which of them are wanted, and gives their room to leases.

import type { VmImage } from "@holdfast/contracts/node/vm-host";
import { sizeOfProfile, type VmProfile } from "@holdfast/contracts/vm/profiles";
import type { Log } from "../log.ts";
import type { KnownVm } from "./known-vm.ts";
import type { VmRecord } from "./record.generated.ts";

export type WarmWish = { imageId: string; profile: VmProfile; count: number };

export type WarmPool = {
  /** Removes what is not wanted any more, and boots one that is missing. */
  keep(): Promise<void>;
  /** None is booted while it works. */
  during<Value>(work: () => Promise<Value>): Promise<Value>;
  /** Removes one, so that a lease has its room. False: there is none. */
  makeRoom(): Promise<boolean>;
};

/** Under TCG a complete guest takes about a minute. */
const PAUSED_WITHIN_SECONDS = 600;
/** An image that does not get that far costs its boot each time. */
const RETRY_SECONDS = 3600;
const TOO_LATE = "its guest did not look for its seed";

export function createWarmPool(options: {
  wishes: readonly WarmWish[];
  /** That have not ended. */
  warm: () => KnownVm[];
  images: () => readonly VmImage[];
  /** Whether a VM would be launched like this now. */
  isCurrent: (record: VmRecord) => boolean;
  /** Resolves when QEMU runs; rejects with `vm_no_capacity` if there is no room. */
  boot: (wish: WarmWish, sha256: string) => Promise<KnownVm>;
  end: (vm: KnownVm) => Promise<void>;
  now: () => number;
  log: Log;
}): WarmPool {
  const { wishes, warm, images, now, log } = options;
  const retryAt = new Map<WarmWish, number>();
  let booting: { vm: KnownVm; wish: WarmWish } | undefined;
  let working = 0;
  let running: Promise<void> | undefined;
  let again = false;
  const began = now();

  const failed = (wish: WarmWish, why: string) => {
    retryAt.set(wish, now() + RETRY_SECONDS);
    const { imageId: image, profile } = wish;
    log.error("a VM could not be booted ahead", { image, profile, why, retry_in_seconds: RETRY_SECONDS });
  };
  const usable = (imageId: string) => images().find(({ id, problem }) => id === imageId && problem === null);
  const isOf = ({ record }: KnownVm, { imageId, profile }: WarmWish) =>
    record.image.id === imageId &&
    record.vcpus === sizeOfProfile[profile].vcpus &&
    record.memory_mib === sizeOfProfile[profile].memory_mib;
  const of = (wish: WarmWish) => warm().filter((vm) => isOf(vm, wish));

  /** Undefined: it is wanted. */
  const whyUnwanted = (vm: KnownVm): string | undefined => {
    const { record } = vm;
    const wish = wishes.find((one) => isOf(vm, one));
    if (!wish || of(wish).indexOf(vm) >= wish.count) return "HOLDFAST_VM_WARM does not ask for it";
    if (usable(record.image.id)?.sha256 !== record.image.sha256) return "its image was changed or removed";
    if (!options.isCurrent(record)) return "the settings of VMs were changed";
    // One of an earlier agent process reports its pause a moment after that process' successor has begun.
    const isLate = now() > Math.max(record.began_at, began) + PAUSED_WITHIN_SECONDS;
    return !vm.isPaused && isLate ? TOO_LATE : undefined;
  };

  /** Undefined: all are there, or there is no room. */
  const bootNext = async () => {
    for (const wish of wishes) {
      const sha256 = usable(wish.imageId)?.sha256;
      const isDue = (retryAt.get(wish) ?? 0) <= now();
      if (!sha256 || !isDue || of(wish).length >= wish.count) continue;
      try {
        booting = { vm: await options.boot(wish, sha256), wish };
      } catch (error) {
        // Its turn comes when something ends.
        if ((error as { code?: string }).code === "vm_no_capacity") continue;
        failed(wish, (error as Error).message);
      }
      return;
    }
  };

  const keepOnce = async () => {
    for (const vm of warm()) {
      const why = whyUnwanted(vm);
      if (why === undefined) continue;
      log.info("a VM that was booted ahead is removed", { vm_id: vm.record.vm_id, why });
      if (booting?.vm === vm && why !== TOO_LATE) booting = undefined;
      // What is left of it is on record, and tried again by the checks of all VMs.
      await options.end(vm).catch(() => undefined);
    }
    if (booting && !booting.vm.isPaused) {
      if (booting.vm.state === "running") return;
      failed(booting.wish, TOO_LATE);
    }
    booting = undefined;
    if (working === 0) await bootNext();
  };

  const keep = () => {
    again = true;
    running ??= (async () => {
      while (again) {
        again = false;
        await keepOnce();
      }
    })().finally(() => {
      running = undefined;
    });
    return running;
  };

  return {
    keep,
    async during(work) {
      working += 1;
      try {
        return await work();
      } finally {
        working -= 1;
        void keep();
      }
    },
    async makeRoom() {
      // One that is being launched is on record completely then.
      await running;
      const [vm] = warm();
      if (!vm) return false;
      if (booting?.vm === vm) booting = undefined;
      log.info("a VM that was booted ahead gives its room to a lease", { vm_id: vm.record.vm_id });
      await options.end(vm);
      return true;
    },
  };
}
