// Generated from record.schema.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { z } from "zod";
import type * as schemas from "./record.schema.ts";

const shared1 = check.record(check.string(), check.string(), "Invalid key in record");
const shared2 = check.chain(check.number(), check.min(0, "Too small: expected number to be >=0"));
const shared3 = check.nullable(shared2);

export type DownloadState = z.output<typeof schemas.DownloadState>;
export const DownloadState: check.Check<DownloadState> = check.of(check.strictObject({
  validator: check.nullable(check.string()),
  total_bytes: check.nullable(check.chain(check.number(), check.integer())),
}));

export type FetchedImages = z.output<typeof schemas.FetchedImages>;
export const FetchedImages: check.Check<FetchedImages> = check.of(shared1);

export type GuestRecord = z.output<typeof schemas.GuestRecord>;
export const GuestRecord: check.Check<GuestRecord> = check.of(check.strictObject({
  seed_sha256: check.nullable(check.string()),
  session_sha256: check.nullable(check.string()),
  connected_at: check.nullable(check.string()),
  disconnected_at: shared3,
}));

export type HostTag = z.output<typeof schemas.HostTag>;
export const HostTag: check.Check<HostTag> = check.of(check.strictObject({
  tag: check.chain(
    check.string(),
    check.pattern(/^[0-9a-f]{12}$/, "Invalid string: must match pattern /^[0-9a-f]{12}$/"),
  ),
}));

export type ImageDigests = z.output<typeof schemas.ImageDigests>;
export const ImageDigests: check.Check<ImageDigests> = check.of(shared1);

export type VmProcessRecord = z.output<typeof schemas.VmProcessRecord>;
export const VmProcessRecord: check.Check<VmProcessRecord> = check.of(check.strictObject({pid: check.chain(check.number(), check.integer()), start_ticks: check.string()}));

export type VmRecord = z.output<typeof schemas.VmRecord>;
export const VmRecord: check.Check<VmRecord> = check.of(check.strictObject({
  vm_id: check.string(),
  task_id: check.string(),
  host_tag: check.string(),
  image: check.strictObject({
    id: check.string(),
    sha256: check.string(),
    path: check.string(),
    dev: check.string(),
    ino: check.string(),
  }),
  vcpus: check.chain(check.number(), check.integer()),
  memory_mib: check.chain(check.number(), check.integer()),
  disk_mib: check.chain(check.number(), check.integer()),
  accelerator: check.oneOf(["kvm", "nvmm", "tcg"], "Invalid option: expected one of \"kvm\"|\"nvmm\"|\"tcg\""),
  network: check.oneOf(
    ["user", "bridge", "tap"],
    "Invalid option: expected one of \"user\"|\"bridge\"|\"tap\"",
  ),
  uplink: check.optional(check.boolean()),
  warm: check.optional(check.boolean()),
  ttl_seconds: shared2,
  connect_within_seconds: shared3,
  disconnect_grace_seconds: shared3,
  boot_id: check.string(),
  began_at: shared2,
}));
