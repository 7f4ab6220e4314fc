// What a driver of VMs owes. It makes and removes single things of one VM: an overlay, a tap, a process. It keeps no state:
// what exists, and in which order it is made and undone, is in the journal of the agent's VMs (`node-agent/src/vms/`).
// Everything that it makes carries the tag of the host and the id of the VM; it finds and removes nothing else.

import type { VmAccelerator } from "@holdfast/contracts/node/vm-host";
import type { ProcessIdentity } from "@holdfast/kit/processes";

export type VmFiles = {
  /** Below it are all others, except for the overlay. */
  directory: string;
  seed: string;
  overlay: string;
  channel: string;
  qmp: string;
  serialLog: string;
  /** A pipe. */
  serialInput: string;
  qemuLog: string;
  /** Of QEMU on the `user` network: the resolver that the uplink offers. */
  resolver: string;
  uplinkLog: string;
};

/**
 * `user`: the VM is in a network namespace of its own, so the loopback that its guest reaches is not the host's. `uplink`: that
 * namespace gets a way out (`connectUplink`).
 */
export type VmNetwork = { backend: "user"; uplink: boolean } | { backend: "tap"; tap: string };

export type VmTag = { hostTag: string; vmId: string };

export type VmProcess = VmTag & {
  accelerator: VmAccelerator;
  vcpus: number;
  memoryMib: number;
  mac: string;
  network: VmNetwork;
  files: VmFiles;
  /** Of the serial log; when it is full, the older half is dropped. */
  serialBytes: number;
  /** The VM is paused when its guest first reads this sector (of 512 bytes) of its seed, and reads it again when it is resumed. */
  pausesAt?: number | undefined;
};

export type ImageFacts = { virtualBytes: number; problem: string | undefined };

export type VmDriver = {
  /** Boots a guest of one sector: a device that opens may still hang. */
  probe(accelerator: VmAccelerator): Promise<{ usable: boolean; detail: string }>;
  /** Of a base image. Throws if it is no qcow2 image at all. */
  inspectImage(path: string): Promise<ImageFacts>;
  /** Replaces what is there under this name. `bytes`: undefined: as large as the base. */
  createOverlay(overlay: { base: string; path: string; bytes: number | undefined }): Promise<void>;
  removeOverlay(path: string): Promise<void>;
  /** Resolves when QEMU runs and answers. Otherwise it throws, with QEMU's own message, and may leave processes. */
  start(vm: VmProcess): Promise<ProcessIdentity>;
  /** Living processes with a tag of this host. `main`: QEMU itself. */
  processes(hostTag: string): (VmTag & { process: ProcessIdentity; main: boolean })[];
  /** Resolves when none is left. */
  kill(vm: VmTag): Promise<void>;
  /** Whether this process has exactly this file open. */
  hasOpen(process: ProcessIdentity, file: { dev: bigint; ino: bigint }): boolean;
  /**
   * Connects the namespace of a running VM on the `user` network with the networks of the host, its loopback excepted. Resolves
   * when there is a route; nothing happens if it is connected.
   */
  connectUplink(vm: VmTag & { process: ProcessIdentity; files: VmFiles }): Promise<void>;
  /** Resolves when its process is gone. */
  removeUplink(vm: VmTag): Promise<void>;
  createTap(vm: VmTag & { tap: string; bridge: string }): Promise<void>;
  /** Nothing happens if there is none, or if it does not carry this tag. */
  removeTap(vm: VmTag & { tap: string }): Promise<void>;
  taps(hostTag: string): Promise<(VmTag & { tap: string })[]>;
};
