// How a host is, as its kernel tells it: the result of a health probe, and what a node's page shows of the last one.

import { z } from "zod";
import { ReportedText } from "./fields.ts";

const Bytes = z.int().nonnegative();
const Told = ReportedText.max(200);

/** `null` is what this host does not tell. */
export const HostHealth = z.strictObject({
  kernel: Told.nullable(),
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
  vfio_modules: z.array(Told).max(32),
  iommu_groups: z.int().nonnegative(),
  /** PCI display controllers and processing accelerators. */
  gpus: z
    .array(
      z.strictObject({
        address: Told,
        vendor_id: Told,
        device_id: Told,
        vendor: Told.nullable(),
        driver: Told.nullable(),
        numa_node: z.int().nullable(),
        iommu_group: Told.nullable(),
      }),
    )
    .max(64),
  /** Network interfaces, those with hardware behind them first. */
  links: z
    .array(
      z.strictObject({
        name: Told,
        state: Told,
        hardware: z.boolean(),
        driver: Told.nullable(),
        speed_mbps: z.int().nullable(),
      }),
    )
    .max(128),
  infiniband: z
    .array(z.strictObject({ device: Told, port: Told, state: Told.nullable(), rate: Told.nullable() }))
    .max(128),
});
export type HostHealth = z.infer<typeof HostHealth>;
