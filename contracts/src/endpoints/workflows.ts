// Workflows: documents that describe steps (ADR 59, 60). The draft changes with every apply; what is published never does.
// Documents travel as text, so that positions of problems are those of what the author sees.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { AnyText, Id, Slug, Time } from "../fields.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";

/** Of one organization. */
export const MOST_WORKFLOWS = 500;
/** Of one workflow. */
export const MOST_WORKFLOW_VERSIONS = 10_000;
const MOST_SOURCE_CHARACTERS = 256 * 1024;

export const WorkflowProblem = z.strictObject({
  code: z.string(),
  message: z.string(),
  path: z.string().describe("Where in the document, such as `nodes.fetch.after[0]`."),
  line: z.int().describe("From 1."),
  column: z.int().describe("From 1."),
});
export type WorkflowProblem = z.infer<typeof WorkflowProblem>;

export const WorkflowChange = z.strictObject({
  kind: z.enum(["added", "removed", "changed"]),
  path: z.string(),
  before: z.unknown().optional(),
  after: z.unknown().optional(),
});
export type WorkflowChange = z.infer<typeof WorkflowChange>;

export const WorkflowSource = AnyText.min(1)
  .max(MOST_SOURCE_CHARACTERS)
  .describe(
    "The document as YAML or JSON. The schema is docs/reference/workflow.v1.schema.json; v2 documents are accepted.",
  );

export const Workflow = z.strictObject({
  id: Id,
  name: z.string(),
  revision: z.int().describe("Counts the changes of the draft."),
  draft_valid: z.boolean(),
  published_version: z.int().nullable().describe("The newest published version, which runs use."),
  changed_since_published: z.boolean().describe("The draft is not what was published last."),
  created_by: z.string(),
  created_at: Time,
  changed_by: z.string().describe("Who changed the draft."),
  changed_at: Time,
  published_at: Time.nullable(),
});
export type Workflow = z.infer<typeof Workflow>;

export const WorkflowVersion = z.strictObject({
  version: z.int(),
  source: z.string().describe("As it was written."),
  published_by: z.string(),
  published_at: Time,
});
export type WorkflowVersion = z.infer<typeof WorkflowVersion>;

export const WorkflowTrigger = z.strictObject({
  id: Id,
  type: z.enum(["cron", "webhook"]),
  enabled: z.boolean(),
  schedule: z.string().nullable(),
  timezone: z.string().nullable(),
  missed: z
    .enum(["skip", "once", "all"])
    .nullable()
    .describe("What becomes of times that passed while nothing could run."),
  next_at: Time.nullable().describe("When a schedule starts its next run; null while it is disabled."),
  last_at: Time.nullable().describe("When it last started a run."),
  last_run_id: Id.nullable(),
  path: z.string().nullable().describe("Of a webhook: where requests are sent, below the address of this server."),
  secret: z.string().nullable().describe("The secret of the organization that signs the requests of a webhook."),
  token_created_at: Time.nullable().describe(
    "When the token of a webhook without a secret was created; null: it has none.",
  ),
});
export type WorkflowTrigger = z.infer<typeof WorkflowTrigger>;

const one = z.strictObject({ workflow_id: Id });

export const listWorkflows = endpoint({
  name: "listWorkflows",
  noun: "workflows",
  method: "GET",
  path: "/v1/workflows",
  summary: "List workflows, newest first",
  access: { scope: "workflows:read" },
  query: PageQuery.extend({ name: AnyText.max(40).optional().describe("Only the one with this name.") }),
  answer: pageOf(Workflow),
});

export const getWorkflow = endpoint({
  name: "getWorkflow",
  noun: "workflows",
  method: "GET",
  path: "/v1/workflows/{workflow_id}",
  summary: "Show a workflow with its draft, and what is wrong with it",
  access: { scope: "workflows:read" },
  params: one,
  answer: Workflow.extend({
    source: z.string().describe("The draft, as it was written."),
    problems: z.array(WorkflowProblem),
    triggers: z.array(WorkflowTrigger).describe("Schedules and webhooks of the published version."),
  }),
});

/** Not a create: applying the same document again changes nothing. */
export const applyWorkflow = endpoint({
  name: "applyWorkflow",
  noun: "workflows",
  method: "POST",
  path: "/v1/workflows",
  summary: "Create a workflow, or replace its draft",
  description:
    "A draft may be invalid: the answer says what is wrong, and it cannot be published. A draft that is the same as before is not a " +
    `change. An organization has at most ${MOST_WORKFLOWS} workflows.`,
  access: { scope: "workflows:write" },
  action: "workflow.apply",
  body: z.strictObject({
    name: Slug,
    source: WorkflowSource,
    revision: z
      .int()
      .min(0)
      .optional()
      .describe("Of the draft that is replaced; 0: there is none yet. Another one is a conflict. Default: any."),
  }),
  answer: Workflow.extend({ problems: z.array(WorkflowProblem) }),
  errors: ["conflict", "workflow_changed"],
  bodyLimit: 2 * 1024 * 1024,
});

/** Not a create: publishing a draft that is published already returns its version. */
export const publishWorkflow = endpoint({
  name: "publishWorkflow",
  noun: "workflows",
  method: "POST",
  path: "/v1/workflows/{workflow_id}/publish",
  summary: "Publish the draft as the next version",
  description: "Versions never change. A draft that is the same as the newest version is not published again.",
  access: { scope: "workflows:write" },
  action: "workflow.publish",
  params: one,
  body: z.strictObject({
    revision: z
      .int()
      .min(1)
      .optional()
      .describe("Of the draft that is meant. Another one is a conflict. Default: any."),
  }),
  answer: z.strictObject({
    workflow: Workflow,
    version: z.int(),
    changes: z.array(WorkflowChange).describe("Since the version before; empty for the first one."),
  }),
  errors: ["workflow_invalid", "workflow_changed", "conflict"],
});

export const listWorkflowVersions = endpoint({
  name: "listWorkflowVersions",
  noun: "workflows",
  method: "GET",
  path: "/v1/workflows/{workflow_id}/versions",
  summary: "List the published versions of a workflow, newest first",
  access: { scope: "workflows:read" },
  params: one,
  query: z.strictObject({
    limit: z.coerce.number().int().min(1).max(200).default(50),
    before: z.coerce.number().int().min(1).optional().describe("Only versions below this one."),
  }),
  answer: z.strictObject({ items: z.array(WorkflowVersion.omit({ source: true })) }),
});

export const getWorkflowVersion = endpoint({
  name: "getWorkflowVersion",
  noun: "workflows",
  method: "GET",
  path: "/v1/workflows/{workflow_id}/version",
  summary: "Show a published version of a workflow",
  access: { scope: "workflows:read" },
  params: one,
  query: z.strictObject({
    number: z.coerce
      .number()
      .int()
      .refine((number) => number !== 0)
      .optional()
      .describe("Which one. Default: the newest. Below 0: what the test of a step ran."),
  }),
  answer: WorkflowVersion,
});

export const deleteWorkflow = endpoint({
  name: "deleteWorkflow",
  noun: "workflows",
  method: "DELETE",
  path: "/v1/workflows/{workflow_id}",
  summary: "Delete a workflow",
  description: "Its name can be used again. Its published versions are kept for the audit.",
  access: { scope: "workflows:write" },
  action: "workflow.delete",
  params: one,
});
