// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

const shared1 = check.chain(check.string(), check.pattern(/^[0-9a-f]{64}$/, "must be a SHA-256, in hex"));
const shared2 = check.chain(check.number(), check.integer(), check.min(0, "Too small: expected number to be >=0"));
const shared3 = check.chain(
  check.string(),
  check.pattern(
    /^[a-z0-9][a-z0-9._-]{0,63}$/,
    "1 to 64 lower-case letters, digits, dots, underscores and hyphens, starting with a letter or digit",
  ),
);

export default {
  type: "vm.image_fetch",
  summary: "Fetch a base image to a VM host",
  kind: "desired_state",
  idempotent: true,
  timeoutSeconds: 21600,
  expiresAfterSeconds: 600,
  concurrency: 2,
  capabilities: ["vm_host"],
  byHand: false,
  resultBytes: 4096,
  failures: {
    vm_host_unavailable: {
      message: "The agent on this node does not run VMs.",
      nextStep: "On the node, install QEMU and set HOLDFAST_VM_HOST=on; the agent's log says what is missing.",
    },
    vm_image_source_refused: {
      message: "The owner of the node does not allow images to be fetched from this address.",
      nextStep: "On the node, add the address to HOLDFAST_VM_IMAGE_SOURCES in its settings, and restart the agent.",
    },
    vm_image_source_unreachable: {
      message: "The image could not be fetched: its server does not respond, or the connection breaks.",
      nextStep: "Check the server of the image from the node. What was received is kept, and the next attempt goes on with it.",
    },
    vm_image_source_failed: {
      message: "The server of the image refused the request.",
      nextStep: "The detail has its status. Correct the URL: retire the image, and add it again.",
    },
    vm_image_digest_wrong: {
      message: "What the server sent does not have the SHA-256 of the catalogue. It was removed.",
      nextStep: "Compare the file on the server with `sha256sum`. A changed image is added under another id, or after the old one is retired.",
    },
    vm_image_disk_full: {
      message: "The file system of the base images has too little room.",
      nextStep: "On the node, free space in NODE_AGENT_BASE_IMAGE_DIR, for example by retiring images that are not used.",
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
  params: check.of(check.strictObject({
    image: check.strictObject({id: shared3, sha256: shared1}),
    url: check.chain(
      check.string(),
      check.maxLength(2000, "Too big: expected string to have <=2000 characters"),
    ),
  })),
  progress: check.of(check.strictObject({received_bytes: check.optional(shared2), total_bytes: check.optional(check.nullable(shared2))})),
  result: check.of(check.strictObject({
    image_id: shared3,
    sha256: shared1,
    file_bytes: shared2,
    fetched: check.boolean(),
    resumed_from_bytes: shared2,
  })),
} satisfies CheckedTaskType;
