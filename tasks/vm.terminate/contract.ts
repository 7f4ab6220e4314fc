// Ends a VM and removes everything of it from the host. It also confirms the end of a VM that the host ended by itself.

import { Id } from "@holdfast/contracts/fields";
import { TerminatedVm } from "@holdfast/contracts/node/vm-host";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "vm.terminate",
  summary: "End a VM and remove everything of it from the host",
  kind: "desired_state",
  idempotent: true,
  timeoutSeconds: 120,
  expiresAfterSeconds: 600,
  concurrency: 8,
  capabilities: [VM_HOST],
  byHand: false,
  resultBytes: 32 * 1024,
  params: z.strictObject({
    vm_id: Id,
    /** The guest gets this long to shut down by itself. */
    grace_seconds: z.int().min(0).max(60).default(0),
  }),
  /** Phases: `powering_down` (with a grace period only), `removing`. */
  progress: z.strictObject({}),
  result: TerminatedVm,
  failures: {
    vm_host_unavailable: {
      message: "The agent on this node does not run VMs.",
      nextStep: "On the node, install QEMU and set HOLDFAST_VM_HOST=on; the agent's log says what is missing.",
    },
    vm_not_removed: {
      message: "Part of the VM could not be removed from the node.",
      nextStep: "The detail names it. The agent tries again every minute and when the task is repeated.",
    },
  },
  orderKey: ({ vm_id }) => vm_id,
});
