// The health of a host as its kernel reports it: the result of a health probe, shown on a node's page.

import { z } from "zod";
import { ReportedText } from "../fields.ts";

const Bytes = z.int().nonnegative();
const Reported = ReportedText.max(200);

/** `null`: this host does not report it. */
export const HostHealth = z.strictObject({
  kernel: Reported.nullable(),
  uptime_seconds: z.number().nonnegative().nullable(),
  /** Averages over 1, 5 and 15 minutes. */
  load: z.tuple([z.number(), z.number(), z.number()]).nullable(),
  memory: z.strictObject({ total_bytes: Bytes, free_bytes: Bytes, available_bytes: Bytes }).nullable(),
  root_disk: z.strictObject({ total_bytes: Bytes, free_bytes: Bytes }).nullable(),
  kvm: z.strictObject({
    device_present: z.boolean(),
    /** The agent may open it. That is no proof that a guest runs: only booting one is. */
    device_opens: z.boolean(),
  }),
  /** VFIO modules, loaded or built in. */
  vfio_modules: z.array(Reported).max(32),
  iommu_groups: z.int().nonnegative(),
  /** PCI display controllers and processing accelerators. */
  gpus: z
    .array(
      z.strictObject({
        address: Reported,
        vendor_id: Reported,
        device_id: Reported,
        vendor: Reported.nullable(),
        driver: Reported.nullable(),
        numa_node: z.int().nullable(),
        iommu_group: Reported.nullable(),
      }),
    )
    .max(64),
  /** Network interfaces, those with hardware behind them first. */
  links: z
    .array(
      z.strictObject({
        name: Reported,
        state: Reported,
        hardware: z.boolean(),
        driver: Reported.nullable(),
        speed_mbps: z.int().nullable(),
      }),
    )
    .max(128),
  infiniband: z
    .array(
      z.strictObject({ device: Reported, port: Reported, state: Reported.nullable(), rate: Reported.nullable() }),
    )
    .max(128),
});
export type HostHealth = z.infer<typeof HostHealth>;
