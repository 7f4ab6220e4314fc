// What a VM costs beside QEMU by hand: from the request of a lease to the callback of its guest, one at a time, ten at once, and one
// that was booted ahead.
// Then VMs come and go, and what is left of them on the host is counted.

import { sizeOfProfile } from "@holdfast/contracts/vm/profiles";
import { openHostDiff } from "../../../testkit/host/host-diff.ts";
import type { Bench, BenchOptions, Measured } from "../bench.ts";
import { bootByHand } from "../vm/by-hand.ts";
import { PROFILE, startVmInstallation, type VmInstallation } from "../vm/ours.ts";

const TOGETHER = 10;
const CHURNED = 200;
const CHURNED_AT_ONCE = 4;

const byHand = "the same QEMU command, seed and overlay by hand";
const nobody = "none";
const figures = {
  single: "lease request to guest callback, one at a time",
  together: `lease request to guest callback, ${TOGETHER} at once, all of them`,
  warm: "lease request to guest callback, with a VM that was booted ahead",
  churned: "VMs churned",
  left: "left of them: processes, files, sockets, links, mounts, cgroups, network namespaces",
};

export const vm: Bench = {
  name: "vm",
  summary: `leases of VMs beside QEMU by hand; ${CHURNED} VMs come and go, nothing is left; --vms N`,
  takes: ["vms"],
  figures: [
    { name: figures.single, unit: "ms", better: "lower", peer: byHand, target: { of: "ratio", value: 1.2 } },
    { name: figures.together, unit: "ms", better: "lower", peer: byHand, target: { of: "ratio", value: 1.2 } },
    { name: figures.warm, unit: "ms", better: "lower", peer: byHand, target: { of: "ratio", value: 0.3 } },
    { name: figures.churned, unit: "VMs", better: "higher", peer: nobody },
    { name: figures.left, unit: "", better: "lower", peer: nobody, target: { of: "ours", value: 0 } },
  ],
  passes: 5,
  prepare: async (lab, options) => {
    const installation = await startVmInstallation(lab);
    const churned = once(() => churn(installation, options));
    const directory = lab.directory();
    const { image } = installation;
    return {
      ours: async () => {
        // Its boot would take part in the other measurements.
        await installation.warmed();
        const cold = await measure(installation.lease, installation.terminate);
        const warm = await time(installation.warmLease, installation.terminate, 1);
        // The next one is in its place before the host is compared with itself.
        await installation.warmed();
        return { ...cold, [figures.warm]: warm, ...(await churned()) };
      },
      theirs: async () => {
        const cold = await measure(
          () => bootByHand(directory, image),
          ({ end }) => end(),
        );
        return { ...cold, [figures.warm]: cold[figures.single] ?? Number.NaN };
      },
      absent: { [nobody]: "nobody else runs beside it" },
      notes: () => [`a VM is ${PROFILE}: ${sizeOfProfile[PROFILE].memory_mib} MiB, 1 vCPU, under TCG`],
    };
  },
};

/** It is long, and every pass reports the same. */
function once<Value>(work: () => Promise<Value>): () => Promise<Value> {
  let done: Promise<Value> | undefined;
  return () => {
    done ??= work();
    return done;
  };
}

async function measure<Vm>(boot: () => Promise<Vm>, end: (vm: Vm) => Promise<void>): Promise<Measured> {
  return { [figures.single]: await time(boot, end, 1), [figures.together]: await time(boot, end, TOGETHER) };
}

async function time<Vm>(boot: () => Promise<Vm>, end: (vm: Vm) => Promise<void>, count: number): Promise<number> {
  const started = performance.now();
  const booted = await Promise.allSettled(Array.from({ length: count }, boot));
  const took = performance.now() - started;
  for (const one of booted) if (one.status === "fulfilled") await end(one.value);
  const failed = booted.find((one) => one.status === "rejected");
  if (failed) throw failed.reason;
  return took;
}

async function churn(
  { lease, terminate, hostTag, directories }: VmInstallation,
  { vms: count = CHURNED }: BenchOptions = {},
): Promise<Measured> {
  const host = openHostDiff({ marks: [`holdfast-${hostTag}`], directories });
  let begun = 0;
  const worker = async () => {
    while (begun < count) {
      begun += 1;
      const id = await lease();
      // While it runs, so that whatever it uses is followed to its end.
      host.look();
      await terminate(id);
      if (begun % 20 === 0) process.stderr.write(`${begun} of ${count} VMs\n`);
    }
  };
  await Promise.all(Array.from({ length: CHURNED_AT_ONCE }, worker));
  const left = host.diff();
  for (const one of left) process.stderr.write(`left: ${one}\n`);
  return { [figures.churned]: begun, [figures.left]: left.length };
}
