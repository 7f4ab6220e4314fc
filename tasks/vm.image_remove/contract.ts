// Removes a base image that the agent fetched, when nothing on the host needs it. Files that somebody else put there are kept.

import { RemovedVmImage, VmImageId, VmSha256 } from "@holdfast/contracts/node/vm-host";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import { z } from "zod";
import { taskType } from "../type.ts";

export default taskType({
  type: "vm.image_remove",
  summary: "Remove a fetched base image from a VM host",
  kind: "desired_state",
  idempotent: true,
  timeoutSeconds: 600,
  expiresAfterSeconds: 600,
  concurrency: 1,
  capabilities: [VM_HOST],
  byHand: false,
  resultBytes: 4096,
  params: z.strictObject({ image: z.strictObject({ id: VmImageId, sha256: VmSha256 }) }),
  progress: z.strictObject({}),
  result: RemovedVmImage,
  failures: {
    vm_host_unavailable: {
      message: "The agent on this node does not run VMs.",
      nextStep: "On the node, install QEMU and set HOLDFAST_VM_HOST=on; the agent's log says what is missing.",
    },
  },
  orderKey: ({ image }) => `image ${image.id}`,
});
