// Whether a VM may be launched on this host now, and with what.

import { existsSync } from "node:fs";
import type { VmAccelerator, VmCapacity, VmLaunch } from "@holdfast/contracts/node/vm-host";
import { TaskFailed } from "@holdfast/tasks/executor";
import { whyNotFitting } from "./capacity.ts";
import { networkProblem, type ProbedAccelerators, type VmHostSetup } from "./host-setup.ts";
import type { Images, PinnedImage } from "./images.ts";
import type { VmRecord } from "./record.generated.ts";

export type Admitted = { record: VmRecord; image: PinnedImage };

/** Throws a TaskFailed that says why not. `present` is asked last, when nothing is waited for any more. */
export async function admit(
  wanted: VmLaunch,
  known: Pick<VmRecord, "task_id" | "host_tag" | "boot_id" | "began_at"> & {
    setup: VmHostSetup;
    accelerators: ProbedAccelerators | undefined;
    images: Pick<Images, "verify">;
    present: () => { exists: boolean; count: number; free: VmCapacity };
  },
): Promise<Admitted> {
  const { setup, accelerators, images, present, ...origin } = known;
  const unusable = networkProblem(setup.network, existsSync);
  if (unusable) throw new TaskFailed("vm_network_unusable", unusable);
  const accelerator = chooseAccelerator(wanted.accelerator, accelerators);
  const image = await images.verify(wanted.image.id, wanted.image.sha256);
  const { exists, count, free } = present();
  if (exists) throw new TaskFailed("vm_exists", `The VM ${wanted.vm_id} is on this node.`);
  const disk_mib = Math.max(Math.ceil(image.virtualBytes / 1024 ** 2), (wanted.disk_gib ?? 0) * 1024);
  const { vm_id, vcpus, memory_mib, ttl_seconds, connect_within_seconds, disconnect_grace_seconds } = wanted;
  const missing =
    count >= setup.mostVms
      ? `${setup.mostVms} VMs are the most on this node.`
      : whyNotFitting(free, { vcpus, memory_mib, disk_mib });
  if (missing) throw new TaskFailed("vm_no_capacity", missing);
  const { id, sha256, path, dev, ino } = image;
  return {
    image,
    record: {
      ...{ ...origin, vm_id, vcpus, memory_mib, disk_mib, accelerator, network: setup.network.backend },
      uplink: setup.network.backend === "user" && setup.network.uplink,
      image: { id, sha256, path, dev: String(dev), ino: String(ino) },
      ...{ ttl_seconds, connect_within_seconds, disconnect_grace_seconds },
    },
  };
}

function chooseAccelerator(wanted: VmAccelerator | "auto", found: ProbedAccelerators | undefined): VmAccelerator {
  const selected = found?.selected;
  if (!selected) throw new TaskFailed("vm_accelerator_unsupported", "No guest boots with QEMU on this node.");
  if (wanted === "auto" || wanted === selected) return selected;
  if (wanted === "tcg") return "tcg";
  const detail = found.probed.find(({ name }) => name === wanted)?.detail ?? "it was not probed on this system";
  throw new TaskFailed("vm_accelerator_unsupported", `selected_accel not supported by host: ${wanted}: ${detail}`);
}
