// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

const shared1 = check.chain(
  check.string(),
  check.pattern(/^[0-9]{1,20}-[0-9]{1,20}[.][0-9]{1,15}$/, "`next` of an earlier response"),
);

export default {
  type: "vm.serial_log",
  summary: "Read the serial log of a VM",
  kind: "observation",
  idempotent: true,
  timeoutSeconds: 40,
  expiresAfterSeconds: 15,
  concurrency: 32,
  capabilities: ["vm_host"],
  byHand: false,
  resultBytes: 131072,
  failures: {
    vm_host_unavailable: {
      message: "The agent on this node does not run VMs.",
      nextStep: "On the node, install QEMU and set HOLDFAST_VM_HOST=on; the agent's log says what is missing.",
    },
    vm_missing: {
      message: "The VM does not run on this node.",
      nextStep: "The page of its lease says how it ended.",
    },
  },
  params: check.of(check.strictObject({
    vm_id: check.pipe(
      check.chain(check.string(), check.overwrite((input) => input.toLowerCase())),
      check.chain(
        check.string("not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4"),
        check.pattern(
          /^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$/,
          "not an id; ids look like 01a1e13c-bc3d-71c5-9b58-aada3c2346d4",
        ),
      ),
    ),
    from: check.nullable(shared1),
    most_bytes: check.defaulted(
      check.chain(
        check.number(),
        check.integer(),
        check.min(1024, "Too small: expected number to be >=1024"),
        check.max(65536, "Too big: expected number to be <=65536"),
      ),
      () => 65536,
    ),
    wait_seconds: check.defaulted(
      check.chain(
        check.number(),
        check.integer(),
        check.min(0, "Too small: expected number to be >=0"),
        check.max(25, "Too big: expected number to be <=25"),
      ),
      () => 0,
    ),
  })),
  progress: check.of(check.strictObject({})),
  result: check.of(check.strictObject({
    text: check.chain(
      check.string(),
      check.maxLength(65536, "Too big: expected string to have <=65536 characters"),
    ),
    next: shared1,
    skipped: check.boolean(),
  })),
} satisfies CheckedTaskType;
