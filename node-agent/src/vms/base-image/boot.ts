// Boots a base image for customization, on this host and without the control plane. The guest runs on a copy. When it has shut down, the
// copy becomes the image, with another digest; if somebody began to use the image meanwhile, it becomes a new one beside it.

import { chmodSync, constants, copyFileSync, renameSync, rmSync, statfsSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { VmAccelerator, VmNetworkBackend } from "@holdfast/contracts/node/vm-host";
import { syncDirectory } from "@holdfast/kit/files";
import { acceleratorArguments, optionText, systemOf } from "../../drivers/qemu/command.ts";
import { qemuDriver } from "../../drivers/qemu/qemu-driver.ts";
import { probeAccelerators } from "../host-setup.ts";
import { sha256Of } from "../images.ts";
import { referencesTo } from "./references.ts";
import { runGuest } from "./run-guest.ts";

export type BootRequest = {
  /** Of the file. */
  image: string;
  sshForward: number | undefined;
  accelerator: VmAccelerator | "auto";
  network: VmNetworkBackend;
  networkInterface: string | undefined;
  headless: boolean;
  vcpus: number;
  memoryMib: number;
};

/** Not to be booted, or not to be published. `nextStep` can be followed as it stands. */
export class BootRefused extends Error {
  override name = "BootRefused";
  readonly nextStep: string;
  constructor(message: string, nextStep: string) {
    super(message);
    this.nextStep = nextStep;
  }
}

export type Published = {
  path: string;
  id: string;
  before: string;
  sha256: string;
  /** `unchanged`: the guest wrote nothing. `beside`: the image was used or changed meanwhile. */
  as: "unchanged" | "same" | "beside";
};

const NOT_IN_PLACE = "A base image is never changed while something needs it: overlays would be corrupted.";

export async function assertBootable(image: string, { overlays }: { overlays: string }): Promise<void> {
  const stat = statSync(image, { throwIfNoEntry: false });
  if (!stat?.isFile())
    throw new BootRefused(
      `The image ${image} does not exist.`,
      "Name the file: NODE_AGENT_BASE_IMAGE_DIR/<base_image_id>.qcow2, by default in /var/lib/jenkins-qemu/base.",
    );
  const { problem } = await qemuDriver.inspectImage(image).catch((error: Error) => ({ problem: error.message }));
  if (problem !== undefined)
    throw new BootRefused(`${image} cannot be used: ${problem}.`, "Flatten it: qemu-img convert -O qcow2");
  const references = await referencesTo(image, { overlays });
  if (references.length > 0)
    throw new BootRefused(
      `${image} is in use: ${references.slice(0, 5).join("; ")}. ${NOT_IN_PLACE}`,
      "Wait until its VMs have ended (`holdfast host disable <host>` keeps new ones away), or boot a copy under another name.",
    );
}

/** The best one that boots a guest here. `note`: why it is not the one that was wanted. */
export async function chooseAccelerator(
  wanted: BootRequest["accelerator"],
  family: string,
): Promise<{ accelerator: VmAccelerator; note: string | undefined }> {
  const { selected, probed } = await probeAccelerators(qemuDriver, wanted, family);
  if (selected === null)
    throw new BootRefused(
      `No guest boots with QEMU here: ${probed.at(-1)?.detail ?? ""}`,
      "Install QEMU. On Debian: apt-get install qemu-system-x86 qemu-utils",
    );
  const failed = probed.filter(({ usable }) => !usable).map(({ name, detail }) => `${name}: ${detail}`);
  return {
    accelerator: selected,
    note: failed.length > 0 ? `Using ${selected}. ${failed.join("; ")}` : undefined,
  };
}

/** Program and arguments of QEMU for this disk. */
export function bootCommand(request: BootRequest, disk: string, accelerator: VmAccelerator): string[] {
  const system = systemOf(process.arch);
  if (!system) throw new BootRefused(`No VM can run on ${process.arch}.`, "Use a host of another architecture.");
  return [
    ...[system.program, "-name", `customize-${idOf(request.image)}`, "-machine", system.machine],
    ...acceleratorArguments(accelerator),
    ...["-smp", String(request.vcpus), "-m", String(request.memoryMib), "-nodefaults", "-no-user-config"],
    ...["-drive", `if=none,id=disk,file=${optionText(disk)},format=qcow2,discard=unmap`],
    ...["-device", "virtio-blk-pci,drive=disk,bootindex=1", "-device", "virtio-rng-pci", "-display", "none"],
    ...networkArguments(request),
    // Ctrl-A X ends QEMU, Ctrl-A C changes to its monitor.
    ...(request.headless ? ["-serial", "null", "-monitor", "none"] : ["-serial", "mon:stdio"]),
  ];
}

function networkArguments({ network, networkInterface = "", sshForward }: BootRequest): string[] {
  const device = ["-device", "virtio-net-pci,netdev=net"];
  switch (network) {
    case "user": {
      const forward = sshForward === undefined ? "" : `,hostfwd=tcp:127.0.0.1:${sshForward}-:22`;
      return ["-netdev", `user,id=net${forward}`, ...device];
    }
    case "bridge":
      return ["-netdev", `bridge,id=net,br=${optionText(networkInterface)}`, ...device];
    case "tap":
      return ["-netdev", `tap,id=net,ifname=${optionText(networkInterface)},script=no,downscript=no`, ...device];
  }
}

/** Boots a copy and waits until its guest has shut down. */
export async function customize(
  request: BootRequest,
  options: { overlays: string; accelerator: VmAccelerator; signal: AbortSignal },
): Promise<Published> {
  const { image } = request;
  await assertBootable(image, options);
  const { mode, size } = statSync(image);
  const { bavail, bsize } = statfsSync(dirname(image));
  if (size > bavail * bsize)
    throw new BootRefused(
      `A copy of ${image} needs ${mib(size)} MiB, and ${mib(bavail * bsize)} MiB are free.`,
      `Free space in ${dirname(image)}.`,
    );
  const copy = join(dirname(image), `.customizing-${idOf(image)}-${process.pid}.qcow2`);
  const original = identityOf(image);
  const before = await sha256Of(image);
  try {
    copyFileSync(image, copy, constants.COPYFILE_FICLONE);
    if (identityOf(image) !== original || (await sha256Of(copy)) !== before)
      throw new BootRefused(`${image} changed while it was copied.`, "Run the command again.");
    chmodSync(copy, mode);
  } catch (error) {
    rmSync(copy, { force: true });
    throw error;
  }
  const { headless } = request;
  const ended = await runGuest(bootCommand(request, copy, options.accelerator), {
    headless,
    signal: options.signal,
  });
  if (ended !== undefined)
    throw new BootRefused(
      `${ended} ${image} is not changed.`,
      `What the guest wrote is in ${copy}: boot that file, or remove it.`,
    );
  const sha256 = await sha256Of(copy);
  if (sha256 === before) {
    rmSync(copy);
    return { path: image, id: idOf(image), before, sha256, as: "unchanged" };
  }
  const free = identityOf(image) === original && (await referencesTo(image, options)).length === 0;
  const id = free ? idOf(image) : `${idOf(image).slice(0, 50)}-${sha256.slice(0, 8)}`;
  const path = join(dirname(image), `${id}.qcow2`);
  renameSync(copy, path);
  syncDirectory(dirname(path));
  return { path, id, before, sha256, as: free ? "same" : "beside" };
}

export const idOf = (image: string) => basename(image).replace(/[.]qcow2$/, "");

function identityOf(path: string): string {
  const { dev, ino, size, mtimeNs } = statSync(path, { bigint: true });
  return [dev, ino, size, mtimeNs].join(":");
}

const mib = (bytes: number) => Math.ceil(bytes / 1024 ** 2);
