// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

const shared1 = check.chain(
  check.string(),
  check.pattern(
    /^[a-z0-9][a-z0-9._-]{0,63}$/,
    "1 to 64 lower-case letters, digits, dots, underscores and hyphens, starting with a letter or digit",
  ),
);

export default {
  type: "vm.image_remove",
  summary: "Remove a fetched base image from a VM host",
  kind: "desired_state",
  idempotent: true,
  timeoutSeconds: 600,
  expiresAfterSeconds: 600,
  concurrency: 1,
  capabilities: ["vm_host"],
  byHand: false,
  resultBytes: 4096,
  failures: {
    vm_host_unavailable: {
      message: "The agent on this node does not run VMs.",
      nextStep: "On the node, install QEMU and set HOLDFAST_VM_HOST=on; the agent's log says what is missing.",
    },
  },
  params: check.of(check.strictObject({
    image: check.strictObject({
      id: shared1,
      sha256: check.chain(check.string(), check.pattern(/^[0-9a-f]{64}$/, "must be a SHA-256, in hex")),
    }),
  })),
  progress: check.of(check.strictObject({})),
  result: check.of(check.strictObject({
    image_id: shared1,
    removed: check.boolean(),
    kept: check.nullable(check.chain(
      check.string(),
      check.overwrite((text) => text.replaceAll("\0", "").toWellFormed()),
      check.maxLength(400, "Too big: expected string to have <=400 characters"),
    )),
  })),
} satisfies CheckedTaskType;
