// Starts a command in the guest of a VM, over its channel. Output and exit code are read with vm.output.

import { VmCommand } from "@holdfast/contracts/node/vm-host";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "vm.exec",
  summary: "Start a command in the guest of a VM",
  kind: "desired_state",
  // By the command's id: a second delivery starts nothing.
  idempotent: true,
  timeoutSeconds: 30,
  expiresAfterSeconds: 60,
  concurrency: 8,
  capabilities: [VM_HOST],
  byHand: false,
  resultBytes: 1024,
  params: VmCommand,
  progress: z.strictObject({}),
  result: z.strictObject({}),
  failures: {
    vm_host_unavailable: {
      message: "The agent on this node does not run VMs.",
      nextStep: "On the node, install QEMU and set HOLDFAST_VM_HOST=on; the agent's log says what is missing.",
    },
    vm_gone: {
      message: "The VM has ended.",
      nextStep: "The detail has the end of its serial console. Request another VM.",
    },
    vm_guest_not_connected: {
      message: "The guest of the VM is not connected, so no command can be started in it.",
      nextStep: "Wait until the lease is connected: `holdfast lease show <id>` shows its state.",
    },
  },
});
