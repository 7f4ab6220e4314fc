// Generated from contract.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { CheckedTaskType } from "../checked-type.ts";

export default {
  type: "node.noop",
  summary: "Do nothing, and prove that the task path works",
  kind: "observation",
  idempotent: true,
  timeoutSeconds: 70,
  expiresAfterSeconds: 300,
  concurrency: 32,
  capabilities: [],
  byHand: true,
  resultBytes: 1024,
  failures: {},
  params: check.of(check.strictObject({
    echo: check.optional(check.chain(
      check.string(),
      check.maxLength(200, "Too big: expected string to have <=200 characters"),
    )),
    hold_ms: check.defaulted(
      check.chain(
        check.number(),
        check.integer(),
        check.min(0, "Too small: expected number to be >=0"),
        check.max(60000, "Too big: expected number to be <=60000"),
      ),
      () => 0,
    ),
  })),
  progress: check.of(check.strictObject({
    percent: check.chain(
      check.number(),
      check.min(0, "Too small: expected number to be >=0"),
      check.max(100, "Too big: expected number to be <=100"),
    ),
  })),
  result: check.of(check.strictObject({echo: check.nullable(check.string())})),
} satisfies CheckedTaskType;
