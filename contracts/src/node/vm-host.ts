// What a VM host and the control plane say to each other: the VMs to launch, and what a heartbeat reports about the host.
// The control plane decides which VM runs where; the host admits only what it has room for, and enforces every deadline
// by itself, so that a VM ends in time also while the control plane is unreachable.

import { z } from "zod";
import { AnyText, Id, ReportedText, Text, Time } from "../fields.ts";
import { MOST_VM_OUTPUT } from "./vm-host-capability.ts";

const Reported = Text.max(200);
const Whole = z.int().nonnegative();
export const VmSha256 = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256, in hex");

/** Of a base image: the file is `<base image directory>/<id>.qcow2`. */
export const VmImageId = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._-]{0,63}$/,
    "1 to 64 lower-case letters, digits, dots, underscores and hyphens, starting with a letter or digit",
  );

export const vmAccelerators = ["kvm", "nvmm", "tcg"] as const;
export const VmAccelerator = z.enum(vmAccelerators);
export type VmAccelerator = z.infer<typeof VmAccelerator>;

const vmNetworkBackends = ["user", "bridge", "tap"] as const;
const VmNetworkBackend = z.enum(vmNetworkBackends);
export type VmNetworkBackend = z.infer<typeof VmNetworkBackend>;

/** Of NoCloud user data: larger does not fit into a task. */
const MOST_USER_DATA = 128 * 1024;

/** One VM, as it is to be launched. All times begin when the host begins to launch it, by the host's monotonic clock. */
export const VmLaunch = z.strictObject({
  vm_id: Id,
  image: z.strictObject({ id: VmImageId, sha256: VmSha256 }),
  vcpus: z.int().min(1).max(256),
  memory_mib: z.int().min(64).max(4_194_304),
  /** Size of the VM's disk; null: that of the image. Never smaller than the image. */
  disk_gib: z.int().min(1).max(65_536).nullable().default(null),
  /** `auto`: the one that the host selected by its boot probe. */
  accelerator: z.enum(["auto", ...vmAccelerators]).default("auto"),
  hostname: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, "a host name: up to 63 lower-case letters, digits and hyphens"),
  /** NoCloud user data; may contain secrets. The host adds vendor data of its own, by which the guest connects. */
  user_data: AnyText.max(MOST_USER_DATA).default("#cloud-config\n{}\n"),
  /** Instead of `user_data`: the host takes it from the control plane (takeVmUserData), and uses only a text with this digest. */
  user_data_sha256: VmSha256.optional(),
  /** The VM is ended when it is this old. */
  ttl_seconds: z
    .int()
    .min(1)
    .max(30 * 86_400),
  /** The VM is ended unless its guest has connected by then; null: no guest is waited for. */
  connect_within_seconds: z.int().min(1).max(86_400).nullable().default(240),
  /** The VM is ended when its guest has been disconnected for this long; null: it stays until its TTL. */
  disconnect_grace_seconds: z.int().min(0).max(86_400).nullable().default(60),
});
export type VmLaunch = z.output<typeof VmLaunch>;

export const LaunchedVm = z.strictObject({
  vm_id: Id,
  /** Of QEMU. */
  pid: z.int().positive(),
  accelerator: VmAccelerator,
  network: VmNetworkBackend,
  serial_log: Text.max(1024),
});
export type LaunchedVm = z.infer<typeof LaunchedVm>;

/**
 * - `launching`: the host makes overlay, seed and process.
 * - `booting`: QEMU runs; the guest has not connected yet.
 * - `connected`: the guest presented the secret from its seed and holds its channel open.
 * - `disconnected`: it did, and closed the channel; the grace period runs.
 * - `terminating`: the host is removing it.
 * - `ended`: nothing of it is left on the host. Listed until a task vm.terminate has confirmed it, or the agent restarts.
 */
const vmStates = ["launching", "booting", "connected", "disconnected", "terminating", "ended"] as const;
const VmState = z.enum(vmStates);
export type VmState = z.infer<typeof VmState>;

/** Why the host ended a VM. */
const vmEnds = [
  "terminated",
  "ttl",
  "connect_deadline",
  "disconnected",
  "guest_off",
  "process_gone",
  "no_lease",
] as const;
export const VmEnd = z.enum(vmEnds);
export type VmEnd = z.infer<typeof VmEnd>;

export const ReportedVm = z.object({
  vm_id: Id,
  state: VmState,
  /** Of a VM that is terminating or has ended. */
  end: VmEnd.nullable(),
  connected_at: Time.nullable(),
  vcpus: Whole,
  memory_mib: Whole,
  disk_mib: Whole,
  image_id: VmImageId,
});
export type ReportedVm = z.infer<typeof ReportedVm>;

const VmImage = z.object({
  id: VmImageId,
  /** Null while it is computed. */
  sha256: VmSha256.nullable(),
  file_bytes: Whole,
  /** Size of the disk that a guest sees. */
  virtual_bytes: Whole.nullable(),
  /** VMs on this host whose overlays need it. */
  references: Whole,
  /** Why no VM can be launched from it; null: it is usable. */
  problem: ReportedText.max(400).nullable(),
  /** The agent fetched it, and removes it on request; others belong to whoever put them there. */
  fetched: z.boolean().default(false),
});
export type VmImage = z.infer<typeof VmImage>;

export const VmCapacity = z.object({ vcpus: Whole, memory_mib: Whole, disk_mib: Whole });
export type VmCapacity = z.infer<typeof VmCapacity>;

/**
 * A VM that was booted ahead and waits, paused, before its guest reads its seed: it belongs to no lease. A launch with its id, its
 * image and its size takes it; with anything else it is removed, and the VM is launched from the beginning.
 */
const WarmVm = z.object({
  vm_id: Id,
  image_id: VmImageId,
  image_sha256: VmSha256,
  accelerator: VmAccelerator,
  vcpus: Whole,
  memory_mib: Whole,
  disk_mib: Whole,
});
export type WarmVm = z.infer<typeof WarmVm>;

/** In the heartbeats of a VM host. A change of a VM's state is reported at once, as are images that appear or change. */
export const VmHostReport = z.object({
  qemu: z.object({ version: Reported, path: Reported }),
  /** Selected by the boot probe; null: the probe is not finished, and nothing can be launched yet. */
  accelerator: VmAccelerator.nullable(),
  /** What the probe found. */
  accelerators: z
    .array(z.object({ name: VmAccelerator, usable: z.boolean(), detail: ReportedText.max(400) }))
    .max(vmAccelerators.length),
  network: z.object({ backend: VmNetworkBackend, interface: Reported.nullable() }),
  capacity: z.object({
    /** What the machine has. */
    physical: VmCapacity,
    /** What its owner allows VMs to use. */
    allocatable: VmCapacity,
    /** Allocatable, less what VMs have been given. Placement counts leases, not this. */
    free: VmCapacity,
    /** Highest number of VMs at a time. */
    most_vms: Whole,
  }),
  /** Share of the last ten seconds in which something waited for a disk, in percent; null: not known. */
  io_pressure_percent: z.number().min(0).max(100).nullable(),
  images: z.array(VmImage).max(256),
  /** Prefixes of URLs from which its owner lets it fetch images. */
  image_sources: z.array(Text.max(500)).max(32).default([]),
  /** All of them: a VM that is not listed after its launch succeeded no longer exists. */
  vms: z.array(ReportedVm).max(512),
  /** Not among `vms`. They give way to leases, so placement does not count them. */
  warm_vms: z.array(WarmVm).max(64).default([]),
  /** Why no VM can be launched at all; null: it can. */
  problem: ReportedText.max(400).nullable(),
});
export type VmHostReport = z.infer<typeof VmHostReport>;

export const TerminatedVm = z.strictObject({
  vm_id: Id,
  /** False: nothing of it was there. */
  existed: z.boolean(),
  /** Why it ended; null: the host does not know of it. */
  end: VmEnd.nullable(),
  /** The end of its serial console, if it existed. */
  serial_tail: ReportedText.max(8192),
});
export type TerminatedVm = z.infer<typeof TerminatedVm>;

/** Program and arguments; the guest's PATH is searched. */
export const VmCommandLine = z
  .array(AnyText.max(8192))
  .min(1)
  .max(256)
  .refine((words) => words.join(" ").length <= 16_384, "at most 16,384 characters in total");

/** A command in the guest of a VM. It is started at most once, by its id. */
export const VmCommand = z.strictObject({ vm_id: Id, command_id: Id, command: VmCommandLine });
export type VmCommand = z.infer<typeof VmCommand>;

export const VmOutputQuery = z.strictObject({
  vm_id: Id,
  command_id: Id,
  /** How many bytes the caller has. */
  offset: Whole,
  /** How long to wait for more. */
  wait_seconds: z.int().min(0).max(20).default(10),
});
export type VmOutputQuery = z.output<typeof VmOutputQuery>;

export const VmOutput = z.strictObject({
  /** Base64: a command may write any bytes. Both of its outputs, as they came. */
  output: z
    .string()
    .regex(/^[A-Za-z0-9+/]*={0,2}$/, "must be base64")
    .max(Math.ceil(MOST_VM_OUTPUT / 3) * 4),
  /** Of the next piece. */
  offset: Whole,
  /** When it has ended and nothing is left to read. */
  exit_code: z.int().min(0).max(255).nullable(),
  /** True: it wrote more than a host keeps; the rest was dropped. */
  cut: z.boolean(),
});
export type VmOutput = z.infer<typeof VmOutput>;

export const FetchedVmImage = z.strictObject({
  image_id: VmImageId,
  sha256: VmSha256,
  file_bytes: Whole,
  /** False: it was there already. */
  fetched: z.boolean(),
  /** How much of an earlier, interrupted attempt was used. */
  resumed_from_bytes: Whole,
});
export type FetchedVmImage = z.infer<typeof FetchedVmImage>;

export const RemovedVmImage = z.strictObject({
  image_id: VmImageId,
  removed: z.boolean(),
  /** Why it was not removed; null: it was. */
  kept: ReportedText.max(400).nullable(),
});
export type RemovedVmImage = z.infer<typeof RemovedVmImage>;

const strayKinds = ["process", "overlay", "seed", "socket", "tap", "record", "vm"] as const;
/** Something on the host that belongs to no VM that should be there, or is not Holdfast's. */
export const VmStray = z.strictObject({
  kind: z.enum(strayKinds),
  /** A path, a pid or the name of an interface. */
  name: ReportedText.max(400),
  vm_id: Id.nullable(),
  /** `kept`: it does not carry this agent's tag, or could not be removed. */
  action: z.enum(["removed", "would_remove", "kept"]),
  why: ReportedText.max(400),
});
export type VmStray = z.infer<typeof VmStray>;

export const VmInventory = z.strictObject({ report: VmHostReport, strays: z.array(VmStray).max(500) });
export type VmInventory = z.infer<typeof VmInventory>;

/** Where in a serial log a reading ended; opaque to everybody but the agent. */
export const SerialPlace = z
  .string()
  .regex(/^[0-9]{1,20}-[0-9]{1,20}[.][0-9]{1,15}$/, "`next` of an earlier response");
