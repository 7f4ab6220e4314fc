// Reads what a command in a VM has written from an offset on, and waits for it: the caller repeats it with the offset of the last
// piece, so nothing is lost when a piece is.

import { VmOutput, VmOutputQuery } from "@holdfast/contracts/node/vm-host";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "vm.output",
  summary: "Read the output and exit code of a command in a VM",
  kind: "observation",
  idempotent: true,
  timeoutSeconds: 30,
  expiresAfterSeconds: 30,
  concurrency: 64,
  capabilities: [VM_HOST],
  byHand: false,
  resultBytes: 96 * 1024,
  params: VmOutputQuery,
  progress: z.strictObject({}),
  result: VmOutput,
  failures: {
    vm_host_unavailable: {
      message: "The agent on this node does not run VMs.",
      nextStep: "On the node, install QEMU and set HOLDFAST_VM_HOST=on; the agent's log says what is missing.",
    },
    vm_gone: {
      message: "The VM has ended.",
      nextStep: "The detail has the end of its serial console. Request another VM.",
    },
    vm_command_unknown: {
      message: "No command with this id was started in the VM.",
      nextStep: "Start it first, with a task vm.exec.",
    },
  },
});
