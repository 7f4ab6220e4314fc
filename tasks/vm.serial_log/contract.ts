// Reads what a VM has written to its serial port, from a place on that an earlier reading returned. Without anything new it
// waits for it, so that whoever follows a log asks rarely.

import { Id } from "@holdfast/contracts/fields";
import { SerialPlace } from "@holdfast/contracts/node/vm-host";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "vm.serial_log",
  summary: "Read the serial log of a VM",
  kind: "observation",
  idempotent: true,
  timeoutSeconds: 40,
  expiresAfterSeconds: 15,
  concurrency: 32,
  capabilities: [VM_HOST],
  byHand: false,
  resultBytes: 128 * 1024,
  params: z.strictObject({
    vm_id: Id,
    /** Null: the end of the log. */
    from: SerialPlace.nullable(),
    most_bytes: z.int().min(1024).max(65_536).default(65_536),
    wait_seconds: z.int().min(0).max(25).default(0),
  }),
  progress: z.strictObject({}),
  result: z.strictObject({
    /** Without control characters, which a guest may send. */
    text: z.string().max(65_536),
    next: SerialPlace,
    /** Output between the place and this text was dropped. */
    skipped: z.boolean(),
  }),
  failures: {
    vm_host_unavailable: {
      message: "The agent on this node does not run VMs.",
      nextStep: "On the node, install QEMU and set HOLDFAST_VM_HOST=on; the agent's log says what is missing.",
    },
    vm_missing: {
      message: "The VM does not run on this node.",
      nextStep: "The page of its lease says how it ended.",
    },
  },
});
