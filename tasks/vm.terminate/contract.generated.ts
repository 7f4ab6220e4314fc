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
  type: "vm.terminate",
  summary: "End a VM and remove everything of it from the host",
  kind: "desired_state",
  idempotent: true,
  timeoutSeconds: 120,
  expiresAfterSeconds: 600,
  concurrency: 8,
  capabilities: ["vm_host"],
  byHand: false,
  resultBytes: 32768,
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
  params: check.of(check.strictObject({
    vm_id: shared1,
    grace_seconds: check.defaulted(
      check.chain(
        check.number(),
        check.integer(),
        check.min(0, "Too small: expected number to be >=0"),
        check.max(60, "Too big: expected number to be <=60"),
      ),
      () => 0,
    ),
  })),
  progress: check.of(check.strictObject({})),
  result: check.of(check.strictObject({
    vm_id: shared1,
    existed: check.boolean(),
    end: check.nullable(check.oneOf(
      [
        "terminated",
        "ttl",
        "connect_deadline",
        "disconnected",
        "guest_off",
        "process_gone",
        "no_lease",
      ],
      "Invalid option: expected one of \"terminated\"|\"ttl\"|\"connect_deadline\"|\"disconnected\"|\"guest_off\"|\"process_gone\"|\"no_lease\"",
    )),
    serial_tail: check.chain(
      check.string(),
      check.overwrite((text) => text.replaceAll("\0", "").toWellFormed()),
      check.maxLength(8192, "Too big: expected string to have <=8192 characters"),
    ),
  })),
} satisfies CheckedTaskType;
