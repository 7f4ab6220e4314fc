// The health of a host: what its kernel reports about load, memory, virtualization and devices.

import { HostHealth } from "@holdfast/contracts/node/host-health";
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "diag.health_probe",
  summary: "Look at the host: kernel, load, memory, disk, virtualization, GPUs, network links",
  kind: "observation",
  idempotent: true,
  timeoutSeconds: 30,
  expiresAfterSeconds: 120,
  concurrency: 1,
  capabilities: [],
  byHand: true,
  resultBytes: 128 * 1024,
  params: z.strictObject({}),
  progress: z.strictObject({}),
  result: HostHealth,
  failures: {},
});
