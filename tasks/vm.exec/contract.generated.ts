// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

const shared1 = check.pipe(
  check.chain(check.string(), check.overwrite((input) => input.toLowerCase())),
  check.chain(
    check.string("not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4"),
    check.pattern(
      /^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$/,
      "not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4",
    ),
  ),
);

export default {
  type: "vm.exec",
  summary: "Start a command in the guest of a VM",
  kind: "desired_state",
  idempotent: true,
  timeoutSeconds: 30,
  expiresAfterSeconds: 60,
  concurrency: 8,
  capabilities: ["vm_host"],
  byHand: false,
  resultBytes: 1024,
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
  params: check.of(check.strictObject({
    vm_id: shared1,
    command_id: shared1,
    command: check.chain(
      check.array(
        check.chain(
          check.string(),
          check.refine((text) => !text.includes("\0"), "must not contain a NUL character"),
          check.refine(
            (text) => text.isWellFormed(),
            "must be valid Unicode: it contains half of a surrogate pair",
          ),
          check.maxLength(8192, "Too big: expected string to have <=8192 characters"),
        ),
        [[256, "Too big: expected array to have <=256 items"]],
      ),
      check.minLength(1, "Too small: expected array to have >=1 items"),
      check.refine(
        (words) => words.join(" ").length <= 16_384,
        "at most 16,384 characters in total",
      ),
    ),
  })),
  progress: check.of(check.strictObject({})),
  result: check.of(check.strictObject({})),
} satisfies CheckedTaskType;
