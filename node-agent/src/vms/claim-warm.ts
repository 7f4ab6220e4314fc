// Gives a warm VM to the lease of a launch. Until here its guest knows of no lease; it gets its seed, and goes on as one that has just
// reached that point of its boot. A crash in between undoes the VM, as that of a launch does.

import { closeSync, openSync, writeSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { VmLaunch } from "@holdfast/contracts/node/vm-host";
import type { PhaseStore } from "@holdfast/tasks/phases/phases";
import type { KnownVm } from "./known-vm.ts";
import { guestWith, newSecret } from "./launch-phases.ts";
import type { VmRecord } from "./record.generated.ts";
import { writeGuest } from "./records.ts";
import { warmSeed } from "./seed.ts";

/** Whether what was admitted now is what this VM was booted as. */
export function isClaimable({ record, state, isPaused }: KnownVm, wanted: VmRecord): boolean {
  return record.warm === true && state === "running" && isPaused === true && isSameMachine(record, wanted);
}

function isSameMachine(one: VmRecord, other: VmRecord): boolean {
  const machine = ({ image, vcpus, memory_mib, disk_mib, accelerator, network, uplink, boot_id }: VmRecord) => ({
    ...{ image, vcpus, memory_mib, disk_mib, accelerator, network, uplink, boot_id },
  });
  return isDeepStrictEqual(machine(one), machine(other));
}

/** Rejects when it may have been given or not: the caller ends it. */
export async function claimWarm(
  vm: KnownVm,
  { record, wanted, enter }: { record: VmRecord; wanted: VmLaunch; enter: (phase: string) => void },
  { store, files }: { store: PhaseStore; files: { directory: string; seed: string } },
): Promise<void> {
  const journal = store.read();
  if (journal?.state !== "made" || !vm.watch) throw new Error("The VM is gone.");
  const phases = journal.phases.map((phase) => (phase.name === "checking" ? { ...phase, plan: record } : phase));
  enter("claiming");
  // On record before anything of the lease is in it: nobody else gets it, and a crash from here on undoes it.
  store.write({ state: "making", phases });
  vm.record = record;
  vm.state = "launching";
  const secret = newSecret();
  const guest = guestWith(secret);
  writeGuest(files.directory, guest);
  vm.guest = guest;
  overwrite(files.seed, warmSeed(wanted, secret, new Date()));
  enter("resuming");
  await vm.watch.resume();
  // Its process may have ended meanwhile, and the VM with it.
  if (!isBeingLaunched(vm)) throw new Error("QEMU is gone.");
  enter("recording_made");
  store.write({ state: "made", phases });
}

const isBeingLaunched = ({ state }: KnownVm) => state === "launching";

/** QEMU has this very file open. */
function overwrite(path: string, bytes: Buffer): void {
  const file = openSync(path, "r+");
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at, at);
  } finally {
    closeSync(file);
  }
}
