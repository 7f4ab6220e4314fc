// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

const shared1 = check.nullable(check.chain(check.number(), check.integer()));
const shared2 = check.chain(check.number(), check.integer(), check.min(0, "Too small: expected number to be >=0"));
const shared3 = check.chain(
  check.string(),
  check.overwrite((text) => text.replaceAll("\0", "").toWellFormed()),
  check.maxLength(200, "Too big: expected string to have <=200 characters"),
);
const shared4 = check.nullable(shared3);

export default {
  type: "diag.health_probe",
  summary: "Look at the host: kernel, load, memory, disk, virtualization, GPUs, network links",
  kind: "observation",
  idempotent: true,
  timeoutSeconds: 30,
  expiresAfterSeconds: 120,
  concurrency: 1,
  capabilities: [],
  byHand: true,
  resultBytes: 131072,
  failures: {},
  params: check.of(check.strictObject({})),
  progress: check.of(check.strictObject({})),
  result: check.of(check.strictObject({
    kernel: shared4,
    uptime_seconds: check.nullable(check.chain(check.number(), check.min(0, "Too small: expected number to be >=0"))),
    load: check.nullable(check.tuple(
      [check.number(), check.number(), check.number()],
      "Too small: expected array to have >=3 items",
      "Too big: expected array to have <=3 items",
    )),
    memory: check.nullable(check.strictObject({total_bytes: shared2, free_bytes: shared2, available_bytes: shared2})),
    root_disk: check.nullable(check.strictObject({total_bytes: shared2, free_bytes: shared2})),
    kvm: check.strictObject({device_present: check.boolean(), device_opens: check.boolean()}),
    vfio_modules: check.array(shared3, [[32, "Too big: expected array to have <=32 items"]]),
    iommu_groups: shared2,
    gpus: check.array(
      check.strictObject({
        address: shared3,
        vendor_id: shared3,
        device_id: shared3,
        vendor: shared4,
        driver: shared4,
        numa_node: shared1,
        iommu_group: shared4,
      }),
      [[64, "Too big: expected array to have <=64 items"]],
    ),
    links: check.array(
      check.strictObject({
        name: shared3,
        state: shared3,
        hardware: check.boolean(),
        driver: shared4,
        speed_mbps: shared1,
      }),
      [[128, "Too big: expected array to have <=128 items"]],
    ),
    infiniband: check.array(
      check.strictObject({device: shared3, port: shared3, state: shared4, rate: shared4}),
      [[128, "Too big: expected array to have <=128 items"]],
    ),
  })),
} satisfies CheckedTaskType;
