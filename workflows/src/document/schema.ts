// The form of a workflow document, version 1. `docs/reference/workflow.v1.schema.json` is made from it. What a schema cannot say
// (cycles, references, what can never run) is in `../validate/`.

import { SecretName } from "@holdfast/contracts/execution/dispatch";
import { AnyText, Id } from "@holdfast/contracts/fields";
import { z } from "zod";

/** In YAML most people write it as a number. */
const documentVersions = ["1", 1] as const;
/** Of one document, as text. */
export const MOST_DOCUMENT_BYTES = 256 * 1024;
const MOST_NODES = 200;
const MOST_EDGES = 50;

export const nodeIdForm = /^[a-z][a-z0-9_-]{0,62}$/;
const nodeIdMessage = "1 to 63 lower-case letters, digits, hyphens and underscores, starting with a letter";
const NodeId = AnyText.regex(nodeIdForm, nodeIdMessage).describe(`${nodeIdMessage}.`);

/** What an edge follows: success, or another way in which its node ended. */
export const ports = ["succeeded", "failed", "true", "false"] as const;
export type Port = (typeof ports)[number];
const Edge = AnyText.regex(
  /^[a-z][a-z0-9_-]{0,62}(\.(failed|true|false))?$/,
  "the id of a node, or id.failed, id.true, id.false",
).describe(
  "The id of a node: after it succeeded. `id.failed`: after it failed. `id.true`, `id.false`: of a condition.",
);

const durationForm = /^[1-9][0-9]{0,8}(ms|s|m|h|d)$/;
const Duration = AnyText.regex(durationForm, "a number and ms, s, m, h or d, such as 30s").describe(
  "A number and a unit: ms, s, m, h or d.",
);
/** A value in which texts may contain `${{ expression }}`. */
const Template = z
  .json()
  .describe("Texts may contain `${{ expression }}`; a text that is nothing else becomes its value.");
const TemplateText = AnyText.min(1).max(200_000);
const MOST_EXPRESSION_CHARACTERS = 10_000;
const Expression = AnyText.min(1).max(MOST_EXPRESSION_CHARACTERS).describe("A JSONata expression.");

const ManualTrigger = z.strictObject({ type: z.literal("manual") });
const CronTrigger = z.strictObject({
  type: z.literal("cron"),
  schedule: AnyText.min(1).max(120).describe("Five fields, or six with seconds first."),
  timezone: AnyText.max(64).optional().describe("An IANA time zone. Default: UTC."),
  missed: z
    .enum(["skip", "once", "all"])
    .optional()
    .describe(
      "What to do about times that passed while nothing could run. Default: once, for all of them together.",
    ),
  input: Template.optional().describe("The input of the runs that it starts."),
});
const WebhookTrigger = z.strictObject({
  type: z.literal("webhook"),
  secret: SecretName.optional().describe("The secret of the organization that signs requests."),
});
export const Trigger = z.discriminatedUnion("type", [ManualTrigger, CronTrigger, WebhookTrigger]);
export type Trigger = z.infer<typeof Trigger>;

const Selector = z
  .strictObject({
    agentId: Id.optional(),
    tag: AnyText.min(1).max(128).optional(),
    group: AnyText.min(1).max(120).optional().describe("Agents with the tag `group:<name>`."),
  })
  .refine((selector) => Object.values(selector).filter((one) => one !== undefined).length === 1, {
    error: "use exactly one of agentId, tag and group",
  });
const Execution = z.strictObject({
  mode: z.enum(["cloud", "node"]).describe("cloud: in the worker. node: on an agent."),
  selector: Selector.optional().describe("Which agents may run it. Default: any."),
});
export type Execution = z.infer<typeof Execution>;

const Retry = z.strictObject({
  attempts: z.int().min(1).max(20).describe("With the first one."),
  delay: Duration.optional().describe("Before the second attempt. Default: 1s."),
  factor: z.number().min(1).max(10).optional().describe("By which the delay grows. Default: 2."),
  most: Duration.optional().describe("The longest delay. Default: 5m."),
  jitter: z.number().min(0).max(1).optional().describe("The random share of each delay. Default: 0.2."),
});
export type Retry = z.infer<typeof Retry>;

const title = AnyText.min(1).max(120).optional().describe("What people see instead of the id.");
const after = z
  .array(Edge)
  .min(1)
  .max(MOST_EDGES)
  .optional()
  .describe("What it waits for. Default: the start of the run.");
const every = { title, after };
const step = {
  ...every,
  execution: Execution.optional(),
  timeout: Duration.optional().describe("Of one attempt. Default: 60s, or as the worker is configured."),
  retry: Retry.optional(),
  effect: z
    .enum(["at-most-once", "idempotent"])
    .optional()
    .describe(
      "Whether an attempt whose outcome is unknown may be repeated with the same idempotency key. Default: what the connector's action " +
        "declares; idempotent for GET and HEAD; otherwise at-most-once.",
    ),
  secret: SecretName.optional().describe("The secret of the organization that the step gets."),
};

const ConnectorAction = z.strictObject({
  type: z.literal("connector.action"),
  ...step,
  connector: AnyText.min(1).max(120),
  action: AnyText.min(1).max(120),
  input: Template.optional(),
});
const AgentExecute = z.strictObject({
  type: z.literal("agent.execute"),
  ...step,
  script: TemplateText.optional().describe("A shell script."),
  shell: z.enum(["sh", "bash"]).optional(),
  env: z.record(AnyText.min(1).max(256), TemplateText).optional(),
  sandbox: z
    .strictObject({
      backend: AnyText.min(1).max(64).optional(),
      network: z.enum(["none", "enabled"]).optional(),
      image: AnyText.min(1).max(500).optional(),
      envPassthroughAllowlist: z.array(AnyText.min(1).max(256)).max(100).optional(),
    })
    .optional(),
});
const HttpRequest = z.strictObject({
  type: z.literal("http.request"),
  ...step,
  method: z
    .enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
    .optional()
    .describe("Default: GET."),
  url: TemplateText.max(2_000),
  headers: z.record(AnyText.min(1).max(256), TemplateText.max(8_192)).optional(),
  body: Template.optional(),
});
const Condition = z.strictObject({ type: z.literal("condition"), ...every, if: Expression });
const Parallel = z.strictObject({ type: z.literal("parallel"), ...every });
const Join = z.strictObject({
  type: z.literal("join"),
  ...every,
  mode: z
    .enum(["all", "any"])
    .optional()
    .describe("all: every edge must be taken. any: the first one that is taken. Default: all."),
});
const Wait = z
  .strictObject({
    type: z.literal("wait"),
    ...every,
    for: Duration.optional().describe("A time."),
    approval: z
      .strictObject({ message: TemplateText.max(2_000).optional() })
      .optional()
      .describe("Somebody who may run the workflow approves or rejects."),
    event: AnyText.min(1).max(120).optional().describe("An event with this name is sent to the run."),
    timeout: Duration.optional().describe("Of an approval or an event; then the node fails."),
  })
  .refine((wait) => [wait.for, wait.approval, wait.event].filter((one) => one !== undefined).length === 1, {
    error: "use exactly one of for, approval and event",
  });

export const Node = z.discriminatedUnion("type", [
  ConnectorAction,
  AgentExecute,
  HttpRequest,
  Condition,
  Parallel,
  Join,
  Wait,
]);
export type Node = z.infer<typeof Node>;

export const WorkflowDocument = z.strictObject({
  version: z.literal(documentVersions),
  description: AnyText.max(2_000).optional(),
  triggers: z.array(Trigger).min(1).max(10).optional().describe("What starts it. Default: manual."),
  nodes: z
    .record(NodeId, Node)
    .refine((nodes) => Object.keys(nodes).length > 0, "a workflow has at least one node")
    .refine((nodes) => Object.keys(nodes).length <= MOST_NODES, `a workflow has at most ${MOST_NODES} nodes`),
  timeout: Duration.optional().describe(
    "How long a run may take from its start, also while it waits. Default and most: 30d.",
  ),
  output: Template.optional().describe("The output of the run. Default: the outputs of its last nodes."),
});
export type WorkflowDocument = z.infer<typeof WorkflowDocument>;

/** For editors: what can be checked while one types. */
export function jsonSchema(): object {
  const { $schema, ...rest } = z.toJSONSchema(WorkflowDocument, { io: "input", target: "draft-2020-12" });
  return {
    $schema,
    $id: "https://holdfast.example/schemas/workflow.v1.json",
    title: "Holdfast workflow",
    ...rest,
  };
}

const milliseconds = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `duration` as the schema has accepted it. */
export function millisecondsOf(duration: string): number {
  const [, count, unit] = /^([0-9]+)(ms|s|m|h|d)$/.exec(duration) ?? [];
  if (count === undefined || unit === undefined) throw new Error(`not a duration: ${duration}`);
  return Number(count) * milliseconds[unit as keyof typeof milliseconds];
}
