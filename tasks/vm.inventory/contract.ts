// Lists what a VM host has: its VMs and images, and everything that belongs to no VM. Removes the latter on request, but
// only what carries the tag of this agent.

import { Id } from "@holdfast/contracts/fields";
import { VmInventory } from "@holdfast/contracts/node/vm-host";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "vm.inventory",
  summary: "List the VMs of a host and what no VM needs, and remove the latter on request",
  kind: "desired_state",
  idempotent: true,
  timeoutSeconds: 120,
  expiresAfterSeconds: 300,
  concurrency: 1,
  capabilities: [VM_HOST],
  byHand: false,
  resultBytes: 512 * 1024,
  params: z.strictObject({
    /** VMs that have a lease; every other one is a stray. Null: VMs are not compared. */
    expected: z.array(Id).max(512).nullable().default(null),
    /** False: explains only what would be removed, and why. */
    remove: z.boolean().default(false),
  }),
  progress: z.strictObject({}),
  result: VmInventory,
  failures: {
    vm_host_unavailable: {
      message: "The agent on this node does not run VMs.",
      nextStep: "On the node, install QEMU and set HOLDFAST_VM_HOST=on; the agent's log says what is missing.",
    },
  },
});
