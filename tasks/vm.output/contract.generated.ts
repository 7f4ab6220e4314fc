// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

const shared1 = check.chain(check.number(), check.integer(), check.min(0, "Too small: expected number to be >=0"));
const shared2 = check.pipe(
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
  type: "vm.output",
  summary: "Read the output and exit code of a command in a VM",
  kind: "observation",
  idempotent: true,
  timeoutSeconds: 30,
  expiresAfterSeconds: 30,
  concurrency: 64,
  capabilities: ["vm_host"],
  byHand: false,
  resultBytes: 98304,
  failures: {
    vm_host_unavailable: {
      message: "The agent on this node does not run VMs.",
      nextStep: "On the node, install QEMU and set HOLDFAST_VM_HOST=on; the agent's log says what is missing.",
    },
    vm_gone: {
      message: "The VM has ended.",
      nextStep: "The detail has the end of its serial console. Request another VM.",
    },
    vm_command_unknown: {
      message: "No command with this id was started in the VM.",
      nextStep: "Start it first, with a task vm.exec.",
    },
  },
  params: check.of(check.strictObject({
    vm_id: shared2,
    command_id: shared2,
    offset: shared1,
    wait_seconds: check.defaulted(
      check.chain(
        check.number(),
        check.integer(),
        check.min(0, "Too small: expected number to be >=0"),
        check.max(20, "Too big: expected number to be <=20"),
      ),
      () => 10,
    ),
  })),
  progress: check.of(check.strictObject({})),
  result: check.of(check.strictObject({
    output: check.chain(
      check.string(),
      check.pattern(/^[A-Za-z0-9+/]*={0,2}$/, "must be base64"),
      check.maxLength(87384, "Too big: expected string to have <=87384 characters"),
    ),
    offset: shared1,
    exit_code: check.nullable(check.chain(
      check.number(),
      check.integer(),
      check.min(0, "Too small: expected number to be >=0"),
      check.max(255, "Too big: expected number to be <=255"),
    )),
    cut: check.boolean(),
  })),
} satisfies CheckedTaskType;
