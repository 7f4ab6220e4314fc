// Runs of workflows (ADR 60). The events of a run are its truth; what is shown beside them follows from them.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { AnyText, Id, Time } from "../fields.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";
import { WorkflowSource } from "./workflows.ts";

export const runStates = ["queued", "running", "succeeded", "failed", "cancelled"] as const;
export const RunState = z.enum(runStates);
export type RunState = z.infer<typeof RunState>;

/** Of the input, as JSON. */
export const MOST_RUN_INPUT_BYTES = 256 * 1024;

/** Runs of one trigger that have not ended. */
export const MOST_OPEN_TRIGGERED_RUNS = 1_000;

const Failure = z.strictObject({ code: z.string(), message: z.string() });

export const Run = z.strictObject({
  id: Id,
  workflow_id: Id,
  workflow_name: z.string(),
  version: z
    .int()
    .describe(
      "The published version that it runs. Below 0: the test of a step, whose document is kept under this number.",
    ),
  status: RunState,
  failure: Failure.nullable(),
  cancel_requested: z.boolean(),
  started_by: z.string(),
  trigger: z.enum(["manual", "cron", "webhook"]).describe("What started it."),
  scheduled_at: Time.nullable().describe("The time of the schedule that started it."),
  correlation_id: z.string(),
  created_at: Time,
  started_at: Time.nullable(),
  finished_at: Time.nullable(),
  deadline_at: Time.describe("It fails if it has not ended by then."),
});
export type Run = z.infer<typeof Run>;

export const RunNodeState = z.enum([
  "pending",
  "started",
  "dispatched",
  "waiting",
  "retrying",
  "succeeded",
  "failed",
  "skipped",
]);
export type RunNodeState = z.infer<typeof RunNodeState>;

export const RunNode = z.strictObject({
  id: z.string(),
  type: z.string(),
  status: RunNodeState,
  attempt: z.int().nullable(),
  waiting_for: z.string().nullable().describe("In words, while it waits for something."),
  output: z.unknown(),
  failure: Failure.nullable(),
});
export type RunNode = z.infer<typeof RunNode>;

export const RunEventEntry = z.strictObject({
  seq: z.int(),
  at: Time,
  type: z
    .string()
    .describe(
      "`run_started`, `node_started`, `node_dispatched`, `node_succeeded`, `node_failed`, `node_retried`, …",
    ),
  node: z.string().nullable(),
  attempt: z.int().nullable(),
  data: z.record(z.string(), z.unknown()),
});
export type RunEventEntry = z.infer<typeof RunEventEntry>;

const one = z.strictObject({ run_id: Id });

export const startRun = endpoint({
  name: "startRun",
  noun: "runs",
  method: "POST",
  path: "/v1/workflows/{workflow_id}/runs",
  summary: "Run the newest published version of a workflow",
  access: { scope: "workflows:run" },
  action: "run.start",
  creates: true,
  params: z.strictObject({ workflow_id: Id }),
  body: z.strictObject({
    input: z.record(AnyText, z.unknown()).default({}).describe("What expressions read as `input`."),
    version: z.int().min(1).optional().describe("Another published version."),
  }),
  answer: Run,
  errors: ["workflow_not_published", "run_input_too_large"],
  bodyLimit: 1024 * 1024,
});

/** Scope of whoever changes drafts: what is tested was not published. */
export const testStep = endpoint({
  name: "testStep",
  noun: "runs",
  method: "POST",
  path: "/v1/workflows/{workflow_id}/test-step",
  summary: "Test one step of a draft: it is run for real, with given outputs of the steps before it",
  description: "Tokens also need the scope workflows:run.",
  access: { scope: "workflows:write" },
  action: "run.test",
  creates: true,
  params: z.strictObject({ workflow_id: Id }),
  body: z.strictObject({
    source: WorkflowSource,
    node: AnyText.min(1).max(63),
    input: z.record(AnyText, z.unknown()).default({}).describe("What expressions read as `input`."),
    outputs: z.record(AnyText, z.unknown()).default({}).describe("By step: what expressions read as its output."),
  }),
  answer: Run,
  errors: ["workflow_invalid", "step_not_testable", "run_input_too_large"],
  bodyLimit: 2 * 1024 * 1024,
});

export const listRuns = endpoint({
  name: "listRuns",
  noun: "runs",
  method: "GET",
  path: "/v1/runs",
  summary: "List runs, newest first",
  access: { scope: "workflows:read" },
  query: PageQuery.extend({ workflow_id: Id.optional(), status: RunState.optional() }),
  answer: pageOf(Run),
});

export const getRun = endpoint({
  name: "getRun",
  noun: "runs",
  method: "GET",
  path: "/v1/runs/{run_id}",
  summary: "Show a run with its nodes, and what each waits for",
  access: { scope: "workflows:read" },
  params: one,
  answer: Run.extend({ input: z.unknown(), output: z.unknown(), nodes: z.array(RunNode) }),
});

export const listRunEvents = endpoint({
  name: "listRunEvents",
  noun: "runs",
  method: "GET",
  path: "/v1/runs/{run_id}/events",
  summary: "The events of a run, oldest first",
  access: { scope: "workflows:read" },
  params: one,
  query: z.strictObject({
    after: z.coerce.number().int().min(0).default(0).describe("The last `seq` that is known."),
    limit: z.coerce.number().int().min(1).max(1000).default(500),
  }),
  answer: z.strictObject({ items: z.array(RunEventEntry), status: RunState }),
});

export const cancelRun = endpoint({
  name: "cancelRun",
  noun: "runs",
  method: "POST",
  path: "/v1/runs/{run_id}/cancel",
  summary: "Cancel a run",
  description: "Nothing new starts. Steps that are running end by themselves, and then the run is cancelled.",
  access: { scope: "workflows:run" },
  action: "run.cancel",
  params: one,
  answer: Run,
  errors: ["run_ended"],
});

export const resumeRun = endpoint({
  name: "resumeRun",
  noun: "runs",
  method: "POST",
  path: "/v1/runs/{run_id}/resume",
  summary: "Approve or reject what a run waits for, or send it the event",
  access: { scope: "workflows:run" },
  action: "run.resume",
  params: one,
  body: z.strictObject({
    node: AnyText.max(63).describe("The node that waits."),
    approved: z.boolean().default(true).describe("False: the node fails."),
    output: z.record(AnyText, z.unknown()).default({}).describe("What the node returns."),
  }),
  answer: Run,
  errors: ["run_not_waiting"],
});

export const sendRunEvent = endpoint({
  name: "sendRunEvent",
  noun: "runs",
  method: "POST",
  path: "/v1/runs/{run_id}/send-event",
  summary: "Send an event to the nodes of a run that wait for it",
  access: { scope: "workflows:run" },
  action: "run.send_event",
  params: one,
  body: z.strictObject({
    event: AnyText.min(1).max(120).describe("Its name, as in the document."),
    output: z.record(AnyText, z.unknown()).default({}).describe("What the nodes return."),
  }),
  answer: Run,
  errors: ["run_not_waiting"],
});

export const retryRun = endpoint({
  name: "retryRun",
  noun: "runs",
  method: "POST",
  path: "/v1/runs/{run_id}/retry",
  summary: "Continue a failed run where it failed",
  description:
    "The steps whose failure no path follows get another attempt, and what was skipped because of them is decided again. Steps that have " +
    "succeeded are not repeated. With `version`, a later published version is used from here on. Its steps may use the secrets that the " +
    "caller may use, and no longer those of whoever started the run.",
  access: { scope: "workflows:run" },
  action: "run.retry",
  params: one,
  body: z.strictObject({
    version: z.int().min(1).optional().describe("Default: the version that it has run so far."),
  }),
  answer: Run,
  errors: ["run_not_failed", "workflow_not_published"],
});
