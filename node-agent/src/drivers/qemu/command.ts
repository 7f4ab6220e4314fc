// The command line of a VM, as a function of what the VM is. Paths and ids contain no comma: QEMU would read it as the
// beginning of another option, so `optionText` doubles it.

import { constants } from "node:os";
import { basename } from "node:path";
import type { VmAccelerator } from "@holdfast/contracts/node/vm-host";
import type { VmNetwork, VmProcess } from "./driver.ts";

/** Of the port through which guest and agent talk. */
export const CHANNEL_NAME = "dev.holdfast.channel.0";

/** By Node's name of the architecture. */
const systems: Readonly<Record<string, { program: string; machine: string }>> = {
  x64: { program: "qemu-system-x86_64", machine: "q35" },
  arm64: { program: "qemu-system-aarch64", machine: "virt" },
};

/** Undefined: no VM can run on this architecture. */
export function systemOf(arch: string): { program: string; machine: string } | undefined {
  return systems[arch];
}

/** Identifies a VM's processes: no other program has it in its arguments. */
export function tagOf(hostTag: string, vmId: string): string {
  return `holdfast-${hostTag}-${vmId}`;
}

export function acceleratorArguments(accelerator: VmAccelerator): string[] {
  const options: Record<VmAccelerator, string[]> = {
    kvm: ["-accel", "kvm", "-cpu", "host"],
    nvmm: ["-accel", "nvmm", "-cpu", "max"],
    tcg: ["-accel", "tcg,thread=multi,tb-size=128", "-cpu", "max"],
  };
  return options[accelerator];
}

/** Nobody: QEMU has opened everything before it drops its privileges. */
const UNPRIVILEGED = "65534:65534";

/** To be run in the directory of the VM: paths of sockets are short. */
export function qemuArguments(vm: VmProcess, options: { machine: string; asRoot: boolean }): string[] {
  const { files } = vm;
  return [
    ...["-name", tagOf(vm.hostTag, vm.vmId), "-machine", options.machine],
    ...acceleratorArguments(vm.accelerator),
    ...["-smp", String(vm.vcpus), "-m", String(vm.memoryMib)],
    ...["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"],
    ...["-sandbox", "on,obsolete=deny,spawn=deny,resourcecontrol=deny"],
    ...(options.asRoot ? ["-runas", UNPRIVILEGED] : []),
    ...["-drive", `if=none,id=disk,file=${optionText(files.overlay)},format=qcow2,cache=unsafe,discard=unmap`],
    ...["-device", "virtio-blk-pci,drive=disk,bootindex=1"],
    // Guests of clouds have no driver for AHCI.
    ...["-device", "virtio-scsi-pci", ...seedArguments(vm)],
    ...networkArguments(vm.network, vm.mac),
    ...["-chardev", "stdio,id=serial,signal=off", "-serial", "chardev:serial"],
    ...["-chardev", `socket,id=channel,path=${optionText(basename(files.channel))},server=on,wait=off`],
    ...["-device", "virtio-serial-pci", "-device", `virtserialport,chardev=channel,name=${CHANNEL_NAME}`],
    ...["-device", "virtio-rng-pci"],
    ...["-qmp", `unix:${optionText(basename(files.qmp))},server=on,wait=off`],
  ];
}

export const SEED_NODE = "seed";

/**
 * QEMU's own means pause a VM: the first read of a sector fails once, a failed read stops the machine, and what failed is read again
 * when it is resumed. Nobody has to watch for it, so it holds while no agent runs.
 */
function seedArguments({ files, pausesAt }: Pick<VmProcess, "files" | "pausesAt">): string[] {
  if (pausesAt === undefined)
    return [
      ...["-drive", `if=none,id=${SEED_NODE},file=${optionText(files.seed)},format=raw,readonly=on,media=cdrom`],
      ...["-device", `scsi-cd,drive=${SEED_NODE}`],
    ];
  const failure = { event: "none", iotype: "read", sector: pausesAt, once: true, errno: constants.errno.EIO };
  const file = {
    ...{ driver: "blkdebug", image: { driver: "file", filename: files.seed }, "inject-error": [failure] },
  };
  const node = { driver: "raw", "node-name": SEED_NODE, "read-only": true, file };
  return ["-blockdev", JSON.stringify(node), "-device", `scsi-cd,drive=${SEED_NODE},rerror=stop`];
}

function networkArguments(network: VmNetwork, mac: string): string[] {
  const backend =
    network.backend === "user"
      ? "user,id=net,ipv6=off"
      : `tap,id=net,ifname=${optionText(network.tap)},script=no,downscript=no`;
  return ["-netdev", backend, "-device", `virtio-net-pci,netdev=net,mac=${mac}`];
}

export function optionText(text: string): string {
  return text.replaceAll(",", ",,");
}
