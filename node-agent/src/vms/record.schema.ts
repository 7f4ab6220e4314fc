// The forms of what the agent keeps about VMs. The agent reads them by record.generated.ts, which is made from this.

import { z } from "zod";

const Seconds = z.number().nonnegative();

/** A VM as it was admitted; the plan of its first phase. User data is not kept: it may be secret. */
export const VmRecord = z.strictObject({
  vm_id: z.string(),
  task_id: z.string(),
  host_tag: z.string(),
  image: z.strictObject({
    id: z.string(),
    sha256: z.string(),
    path: z.string(),
    dev: z.string(),
    ino: z.string(),
  }),
  vcpus: z.int(),
  memory_mib: z.int(),
  disk_mib: z.int(),
  accelerator: z.enum(["kvm", "nvmm", "tcg"]),
  network: z.enum(["user", "bridge", "tap"]),
  /** Whether it has a way out of its namespace. Records of older agents lack it: their VMs have none. */
  uplink: z.boolean().optional(),
  /** It was booted ahead and belongs to no lease; a lease that takes it has a record without this. */
  warm: z.boolean().optional(),
  ttl_seconds: Seconds,
  connect_within_seconds: Seconds.nullable(),
  disconnect_grace_seconds: Seconds.nullable(),
  /** Times are seconds since the boot with this id: a VM does not outlive it, and no clock that is set changes them. */
  boot_id: z.string(),
  began_at: Seconds,
});

/** Beside the seed: the process, once it runs. */
export const VmProcessRecord = z.strictObject({ pid: z.int(), start_ticks: z.string() });

/** Beside the seed: what the guest has presented so far. Digests only. */
export const GuestRecord = z.strictObject({
  /** Of the secret in the seed; null: it was used. */
  seed_sha256: z.string().nullable(),
  /** Of the secret that the guest got for its later connections. */
  session_sha256: z.string().nullable(),
  connected_at: z.string().nullable(),
  /** Since when the channel is closed; null: it is open, or never was. */
  disconnected_at: Seconds.nullable(),
});

/** Digests of base images, by what identifies an unchanged file. */
export const ImageDigests = z.record(z.string(), z.string());

/** Digests of the images that this agent fetched and put in place, by their ids. Others belong to somebody else. */
export const FetchedImages = z.record(z.string(), z.string());

/** Beside a file that is being fetched: which one it is on the server. */
export const DownloadState = z.strictObject({ validator: z.string().nullable(), total_bytes: z.int().nullable() });

/** Tells this agent's VMs from those of another agent on the same host. */
export const HostTag = z.strictObject({ tag: z.string().regex(/^[0-9a-f]{12}$/) });
