// Tasks on nodes. Typed and signed; there is no task that runs a shell command.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { AnyText, Id, Text, Time } from "../fields.ts";
import { PhaseTimings, TaskFailure } from "../node/protocol.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";

export const taskStatuses = ["queued", "dispatched", "completed", "failed", "expired", "cancelled"] as const;
export const TaskStatus = z.enum(taskStatuses);
export type TaskStatus = z.infer<typeof TaskStatus>;
export const terminalStatuses: ReadonlySet<TaskStatus> = new Set(["completed", "failed", "expired", "cancelled"]);

export const Task = z.strictObject({
  id: Id,
  node_id: Id,
  type: z.string(),
  status: TaskStatus,
  priority: z.int(),
  params: z.unknown(),
  phase: z.string().nullable().describe("The current phase; null unless a node is running it."),
  progress: z.unknown().describe("As the task's type declares it; null until some is reported."),
  timings: PhaseTimings,
  result: z.unknown().describe("As the task's type declares it; null until it has one."),
  failure: TaskFailure.nullable(),
  /** Counts deliveries to the node. */
  generation: z.int(),
  /** Changes with everything that can be seen here; what waiting continues from. */
  revision: z.int(),
  cancel_requested_at: Time.nullable(),
  created_by: z.string(),
  correlation_id: z.string(),
  incident_id: Id.nullable().describe("The incident of the node that was open when the task was created."),
  replays: Id.nullable().describe("The task that this one repeats."),
  created_at: Time,
  expires_at: Time,
  dispatched_at: Time.nullable(),
  finished_at: Time.nullable(),
});
export type Task = z.infer<typeof Task>;

export const TaskTypeInfo = z.strictObject({
  type: z.string(),
  summary: z.string(),
  kind: z.enum(["observation", "desired_state"]),
  idempotent: z.boolean(),
  timeout_seconds: z.int(),
  /** One of these is needed on the node; none: every agent can. */
  capabilities: z.array(z.string()),
  /** Whether people may run it by hand, or only the control plane. */
  by_hand: z.boolean(),
  /** JSON Schema. */
  params: z.unknown(),
  result: z.unknown(),
  failures: z.record(z.string(), z.strictObject({ message: z.string(), next_step: z.string() })),
});
export type TaskTypeInfo = z.infer<typeof TaskTypeInfo>;

const params = z.strictObject({ task_id: Id });

export const listTaskTypes = endpoint({
  name: "listTaskTypes",
  noun: "tasks",
  method: "GET",
  path: "/v1/task-types",
  summary: "List the task types with their schemas",
  access: { scope: "tasks:read" },
  answer: z.strictObject({ items: z.array(TaskTypeInfo) }),
});

export const createTask = endpoint({
  name: "createTask",
  noun: "tasks",
  method: "POST",
  path: "/v1/nodes/{node_id}/tasks",
  summary: "Run a task on a node",
  access: { scope: "tasks:write" },
  action: "task.create",
  creates: true,
  params: z.strictObject({ node_id: Id }),
  body: z.strictObject({
    type: Text.max(64),
    params: z.record(AnyText, z.unknown()).default({}),
    priority: z.int().min(0).max(9).default(5),
    expires_in_seconds: z
      .int()
      .min(5)
      .max(86_400)
      .optional()
      .describe("Time within which a node must claim it; default: set by its type."),
  }),
  answer: Task,
  errors: ["task_type_unknown", "task_params_invalid", "capability_missing", "node_not_active"],
});

export const listTasks = endpoint({
  name: "listTasks",
  noun: "tasks",
  method: "GET",
  path: "/v1/tasks",
  summary: "List tasks, newest first",
  description:
    "Automatic health probes are left out unless their type, or the tasks of an incident, are requested.",
  access: { scope: "tasks:read" },
  query: PageQuery.extend({
    node_id: Id.optional(),
    status: TaskStatus.optional(),
    type: Text.max(64).optional(),
    incident_id: Id.optional().describe("Only those created in the course of this incident."),
  }),
  answer: pageOf(Task),
});

export const getTask = endpoint({
  name: "getTask",
  noun: "tasks",
  method: "GET",
  path: "/v1/tasks/{task_id}",
  summary: "Read a task, or wait for its next change",
  description:
    "With `wait_seconds` the response is sent when the revision differs from `revision`, after that time, or immediately if the task has ended.",
  access: { scope: "tasks:read" },
  params,
  query: z.strictObject({
    wait_seconds: z.coerce.number().int().min(0).max(25).default(0),
    revision: z.coerce.number().int().min(0).optional(),
    until: z
      .enum(["change", "end"])
      .default("change")
      .describe("`end` skips intermediate changes, such as progress."),
  }),
  answer: Task,
});

export const cancelTask = endpoint({
  name: "cancelTask",
  noun: "tasks",
  method: "POST",
  path: "/v1/tasks/{task_id}/cancel",
  summary: "Cancel a queued or running task",
  description:
    "A queued task ends immediately; a running one is asked to stop and ends with what its agent reports.",
  access: { scope: "tasks:write" },
  action: "task.cancel",
  params,
  answer: Task,
});

export const replayTask = endpoint({
  name: "replayTask",
  noun: "tasks",
  method: "POST",
  path: "/v1/tasks/{task_id}/replay",
  summary: "Run a task again that got no result",
  description:
    "Creates a new task with the same type and parameters, linked to the old one, which does not change. Only of a type that may " +
    "run twice, and only if the task expired, was interrupted, or lost its lease; once for each task.",
  access: { scope: "tasks:write" },
  action: "task.replay",
  creates: true,
  params,
  answer: Task,
  errors: [
    "task_not_replayable",
    "task_type_unknown",
    "task_params_invalid",
    "capability_missing",
    "node_not_active",
  ],
});
