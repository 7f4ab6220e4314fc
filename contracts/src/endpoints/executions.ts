// Executions: requests to run one step on an agent (ADR 46). They are made through the gateway's dispatch routes.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { outputStreams } from "../execution/frames.ts";
import { AnyText, Id, Time } from "../fields.ts";
import { NotChosen } from "../internal/executions.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";

export const executionStates = [
  "pending",
  "dispatched",
  "running",
  "succeeded",
  "failed",
  "cancelled",
  "unplaced",
] as const;
export const ExecutionState = z.enum(executionStates);
export type ExecutionState = z.infer<typeof ExecutionState>;
/** The agent does nothing more for it. One that is `unplaced` may be dispatched again. */
export const endedStates: ReadonlySet<ExecutionState> = new Set(["succeeded", "failed", "cancelled", "unplaced"]);

export const Execution = z.strictObject({
  id: Id,
  request_id: z.string(),
  run_id: z.string(),
  workflow_id: z.string(),
  step_id: z.string().describe("The `nodeId` of the request: the step within its workflow."),
  attempt: z.int(),
  kind: z.string(),
  status: ExecutionState,
  error: z.string().nullable(),
  agent_id: Id.nullable(),
  agent_name: z.string().nullable(),
  selector: z.strictObject({ tag: z.string().nullable(), agent_id: Id.nullable() }),
  correlation_id: z.string(),
  created_at: Time,
  dispatched_at: Time.nullable(),
  accepted_at: Time.nullable(),
  finished_at: Time.nullable(),
  deadline_at: Time.nullable(),
  cancel_requested_at: Time.nullable(),
  progress: z.strictObject({ message: z.string(), percent: z.number().nullable(), at: Time }).nullable(),
});
export type Execution = z.infer<typeof Execution>;

export const listExecutions = endpoint({
  name: "listExecutions",
  noun: "executions",
  method: "GET",
  path: "/v1/executions",
  summary: "List executions, newest first",
  access: { scope: "executions:read" },
  query: PageQuery.extend({
    status: ExecutionState.optional(),
    agent_id: Id.optional(),
    request_id: AnyText.max(400).optional(),
  }),
  answer: pageOf(Execution),
});

const one = z.strictObject({ execution_id: Id });

export const getExecution = endpoint({
  name: "getExecution",
  noun: "executions",
  method: "GET",
  path: "/v1/executions/{execution_id}",
  summary: "Show an execution with its result, and why it waits",
  access: { scope: "executions:read" },
  params: one,
  answer: Execution.extend({
    output: z.unknown().describe("Null while there is none, or after it was erased."),
    output_erased_at: Time.nullable(),
    not_chosen: z.array(NotChosen).describe("For a request without an agent: why none of them was chosen."),
    late_results: z.array(z.strictObject({ at: Time, status: z.string(), error: z.string().nullable() })),
  }),
});

export const readExecutionOutput = endpoint({
  name: "readExecutionOutput",
  noun: "executions",
  method: "GET",
  path: "/v1/executions/{execution_id}/output",
  summary: "What the step has printed so far",
  access: { scope: "executions:read" },
  params: one,
  query: z.strictObject({
    after: z.coerce.number().int().min(0).default(0).describe("The last `seq` that is known."),
  }),
  answer: z.strictObject({
    chunks: z.array(z.strictObject({ seq: z.int(), stream: z.enum(outputStreams), text: z.string(), at: Time })),
    ended: z.boolean(),
  }),
});

export const cancelExecution = endpoint({
  name: "cancelExecution",
  noun: "executions",
  method: "POST",
  path: "/v1/executions/{execution_id}/cancel",
  summary: "Cancel an execution",
  description:
    "One without an agent ends at once. Otherwise its agent is requested to stop the step; agents of other systems cannot.",
  access: { scope: "executions:write" },
  action: "execution.cancel",
  params: one,
  answer: Execution,
  errors: ["execution_ended"],
});
