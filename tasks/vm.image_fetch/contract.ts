// Fetches a base image to a VM host. The file gets its name when its digest and its form are right. A second task goes on where an
// interrupted one stopped.

import { FetchedVmImage, VmImageId, VmSha256 } from "@holdfast/contracts/node/vm-host";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import { z } from "zod";
import { taskType } from "../type.ts";

const Bytes = z.int().nonnegative();

export default taskType({
  type: "vm.image_fetch",
  summary: "Fetch a base image to a VM host",
  kind: "desired_state",
  idempotent: true,
  timeoutSeconds: 6 * 3600,
  expiresAfterSeconds: 600,
  concurrency: 2,
  capabilities: [VM_HOST],
  byHand: false,
  resultBytes: 4096,
  params: z.strictObject({
    image: z.strictObject({ id: VmImageId, sha256: VmSha256 }),
    url: z.string().max(2000),
  }),
  /** Phases: `checking`, `downloading`, `verifying`, `placing`. */
  progress: z.strictObject({ received_bytes: Bytes.optional(), total_bytes: Bytes.nullable().optional() }),
  result: FetchedVmImage,
  failures: {
    vm_host_unavailable: {
      message: "The agent on this node does not run VMs.",
      nextStep: "On the node, install QEMU and set HOLDFAST_VM_HOST=on; the agent's log says what is missing.",
    },
    vm_image_source_refused: {
      message: "The owner of the node does not allow images to be fetched from this address.",
      nextStep:
        "On the node, add the address to HOLDFAST_VM_IMAGE_SOURCES in its settings, and restart the agent.",
    },
    vm_image_source_unreachable: {
      message: "The image could not be fetched: its server does not respond, or the connection breaks.",
      nextStep:
        "Check the server of the image from the node. What was received is kept, and the next attempt goes on with it.",
    },
    vm_image_source_failed: {
      message: "The server of the image refused the request.",
      nextStep: "The detail has its status. Correct the URL: retire the image, and add it again.",
    },
    vm_image_digest_wrong: {
      message: "What the server sent does not have the SHA-256 of the catalogue. It was removed.",
      nextStep:
        "Compare the file on the server with `sha256sum`. A changed image is added under another id, or after the old one is retired.",
    },
    vm_image_disk_full: {
      message: "The file system of the base images has too little room.",
      nextStep:
        "On the node, free space in NODE_AGENT_BASE_IMAGE_DIR, for example by retiring images that are not used.",
    },
    vm_image_unusable: {
      message: "The image cannot be used: it is no complete, independent qcow2 file. It was removed.",
      nextStep: "Flatten it with `qemu-img convert -O qcow2` and publish the result with its digest.",
    },
    vm_image_not_replaced: {
      message: "Another file with the name of the image is on the node, and is kept.",
      nextStep: "Move that file away on the node, or add the image under another id.",
    },
  },
  orderKey: ({ image }) => `image ${image.id}`,
});
