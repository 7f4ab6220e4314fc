// Leases and images of VM hosts.

import type { ErrorEntry } from "./entry.ts";

export const vmErrors = {
  lease_label_unknown: {
    status: 422,
    message: "The label does not exist.",
    retryable: false,
    nextStep: "Use one of the labels in details, or create it: `holdfast lease label set <label> --image <id>`.",
  },
  lease_image_required: {
    status: 422,
    message: "The request names neither an image nor a label that has one.",
    retryable: false,
    nextStep: "Name one: `--image <id>` or `--label <label>`. `holdfast image list` lists the images.",
  },
  lease_not_connected: {
    status: 409,
    message: "Work can start only in a VM whose guest is connected.",
    retryable: true,
    nextStep: "Wait until the lease is connected: `holdfast lease show <id>` shows its state.",
  },
  lease_log_unavailable: {
    status: 503,
    message: "The host of the VM did not return the serial log.",
    retryable: true,
    nextStep: "Try again in a few seconds. The page of the host says whether it is online.",
  },
  image_unknown: {
    status: 422,
    message: "The image is not in the catalogue.",
    retryable: false,
    nextStep: "Use one of the images in details, or add it: `holdfast image add <id>`.",
  },
  image_retired: {
    status: 409,
    message: "The image is retired: no new lease gets it.",
    retryable: false,
    nextStep: "Use another image, or add this one again: `holdfast image add <id>`.",
  },
  image_exists: {
    status: 409,
    message: "The catalogue has this image with another digest.",
    retryable: false,
    nextStep:
      "Publish the changed image under another id, or retire this one first: `holdfast image retire <id>`.",
  },
  image_digest_unknown: {
    status: 422,
    message: "No digest was given, and hosts do not report one and the same for this image.",
    retryable: false,
    nextStep:
      "Pass the digest that `sha256sum <file>` prints with `--sha256 <digest>`. Details have what hosts report.",
  },
  image_in_use: {
    status: 409,
    message: "Leases or labels use the image.",
    retryable: false,
    nextStep: "Wait until the leases in details have ended, and remove the image from the labels.",
  },
  image_not_fetchable: {
    status: 409,
    message: "The image has no URL: hosts cannot fetch it.",
    retryable: false,
    nextStep:
      "Put the file on the hosts by hand, or give the image a URL: `holdfast image add <id> --url <url> --sha256 <digest>`.",
  },
} as const satisfies Record<string, ErrorEntry>;
