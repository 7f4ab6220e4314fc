// Generated from payloads.schema.ts by `npm run generate`; do not edit.

import * as check from "@holdfast/kit/checks";
import type { z } from "zod";
import type * as schemas from "./payloads.schema.ts";

const shared1 = check.minLength(1, "Too small: expected string to have >=1 characters");
const shared2 = check.maxLength(200, "Too big: expected string to have <=200 characters");
const shared3 = check.maxLength(256, "Too big: expected string to have <=256 characters");
const shared4 = check.refine((text) => !text.includes("\0"), "must not contain a NUL character");
const shared5 = check.refine(
  (text) => text.isWellFormed(),
  "must be valid Unicode: it contains half of a surrogate pair",
);
const shared6 = check.optional(check.chain(check.string(), shared4, shared5, shared2));
const shared7 = check.chain(check.string(), shared4, shared5, shared1, shared2);
const shared8 = check.chain(
  check.string(),
  shared4,
  shared5,
  shared1,
  check.maxLength(120, "Too big: expected string to have <=120 characters"),
);

export type AgentExecutePayload = z.output<typeof schemas.AgentExecutePayload>;
export const AgentExecutePayload: check.Check<AgentExecutePayload> = check.of(check.object({
  nodeId: shared7,
  node: check.object({
    id: shared7,
    type: check.oneOf(["agent.execute"], "Invalid input: expected \"agent.execute\""),
    config: check.optional(check.object({
      task: check.optional(check.object({
        type: check.oneOf(["shell"], "Invalid input: expected \"shell\""),
        script: check.chain(
          check.string(),
          shared4,
          shared5,
          shared1,
          check.maxLength(200000, "Too big: expected string to have <=200000 characters"),
        ),
        shell: check.optional(check.oneOf(["sh", "bash"], "Invalid option: expected one of \"sh\"|\"bash\"")),
        env: check.optional(check.record(
          check.chain(check.string(), shared4, shared5, shared3),
          check.chain(
            check.string(),
            shared4,
            shared5,
            check.maxLength(65536, "Too big: expected string to have <=65536 characters"),
          ),
          "Invalid key in record",
        )),
      })),
      sandbox: check.optional(check.object({
        backend: check.optional(check.chain(
          check.string(),
          shared4,
          shared5,
          check.maxLength(64, "Too big: expected string to have <=64 characters"),
        )),
        network: check.optional(check.oneOf(["none", "enabled"], "Invalid option: expected one of \"none\"|\"enabled\"")),
        timeoutMs: check.optional(check.chain(
          check.number(),
          check.integer(),
          check.min(1000, "Too small: expected number to be >=1000"),
          check.max(600000, "Too big: expected number to be <=600000"),
        )),
        docker: check.optional(check.object({
          image: check.chain(
            check.string(),
            shared4,
            shared5,
            shared1,
            check.maxLength(500, "Too big: expected string to have <=500 characters"),
          ),
        })),
        envPassthroughAllowlist: check.optional(check.array(
          check.chain(check.string(), shared4, shared5, shared1, shared3),
          [[100, "Too big: expected array to have <=100 items"]],
        )),
      })),
    })),
  }),
  runId: shared6,
  workflowId: shared6,
  attemptCount: check.optional(check.chain(check.number(), check.integer())),
}));

export type ConnectorActionPayload = z.output<typeof schemas.ConnectorActionPayload>;
export const ConnectorActionPayload: check.Check<ConnectorActionPayload> = check.of(check.object({
  connectorId: shared8,
  actionId: shared8,
  input: check.optional(check.unknown()),
  env: check.optional(check.unknown()),
}));
