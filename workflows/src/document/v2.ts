// Documents of the source system (`version: v2`): one trigger, and nodes that run one after the other. They are accepted and become
// documents of version 1. A condition that is false ends the run, as everything behind it is skipped.

import { AnyText, Id } from "@holdfast/contracts/fields";
import { z } from "zod";
import type { Finding, Path } from "./problem.ts";
import { type Node, nodeIdForm, type Trigger } from "./schema.ts";

const V2Trigger = z.discriminatedUnion("type", [
  z.object({ type: z.literal("trigger.manual") }),
  z.object({ type: z.literal("trigger.webhook"), config: z.object({ token: AnyText.min(1) }).optional() }),
  z.object({ type: z.literal("trigger.cron"), config: z.object({ cron: AnyText.min(1) }) }),
]);

const V2Selector = z.union([
  z.strictObject({ tag: AnyText.min(1).max(64) }),
  z.strictObject({ agentId: Id }),
  z.strictObject({ group: AnyText.min(1).max(64) }),
]);
/** Later versions of the source system say `executor` where earlier ones say `node`. */
const V2Execution = z.object({ mode: z.enum(["cloud", "node", "executor"]), selector: V2Selector.optional() });
const id = AnyText.min(1).max(120);

const V2Node = z.discriminatedUnion("type", [
  z.object({
    ...{ id, type: z.literal("http.request") },
    config: z.object({
      method: z.enum(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
      url: AnyText.min(1).max(2000),
      headers: z.record(AnyText.min(1), AnyText).optional(),
      body: z.json().optional(),
    }),
  }),
  z.object({
    ...{ id, type: z.literal("agent.execute") },
    config: z
      .object({
        execution: V2Execution.optional(),
        task: z
          .object({
            type: z.literal("shell"),
            script: AnyText.min(1).max(200_000),
            shell: z.enum(["sh", "bash"]).optional(),
            env: z.record(AnyText.min(1), AnyText).optional(),
          })
          .optional(),
        sandbox: z
          .object({
            backend: AnyText.min(1).max(64).optional(),
            network: z.enum(["none", "enabled"]).optional(),
            timeoutMs: z.int().min(1000).max(600_000).optional(),
            docker: z.object({ image: AnyText.min(1).optional() }).optional(),
            envPassthroughAllowlist: z.array(AnyText.min(1)).max(50).optional(),
          })
          .optional(),
      })
      .optional(),
  }),
  z.object({
    ...{ id, type: z.literal("connector.action") },
    config: z.object({
      connectorId: AnyText.min(1).max(120),
      actionId: AnyText.min(1).max(120),
      input: z.json().optional(),
      /** By id in the source system; ours are named, and its ids mean nothing here. */
      auth: z.object({ secretId: AnyText.optional(), secretName: AnyText.optional() }).optional(),
      execution: V2Execution.optional(),
    }),
  }),
  z.object({
    ...{ id, type: z.literal("condition") },
    config: z.object({
      path: AnyText.regex(/^[A-Za-z_$][\w$-]*(\.[\w$-]+)*$/, "a path such as input.state").max(500),
      op: z.enum(["eq", "neq", "contains", "exists", "gt", "gte", "lt", "lte"]),
      value: z.union([AnyText, z.number(), z.boolean(), z.null()]).optional(),
    }),
  }),
  z.object({
    ...{ id, type: z.literal("parallel.join") },
    config: z.object({ mode: z.literal("all").optional(), failFast: z.boolean().optional() }).optional(),
  }),
]);
type V2Node = z.infer<typeof V2Node>;

export const V2Document = z.object({
  version: z.literal("v2"),
  trigger: V2Trigger,
  nodes: z.array(V2Node).min(1).max(200),
});
type V2Document = z.infer<typeof V2Document>;

type Upgraded = {
  document: unknown;
  findings: Finding[];
  /** Where a value of the new document stands in the old one. */
  originOf: (path: Path) => Path;
};

export function upgradeV2(old: V2Document): Upgraded {
  const ids = old.nodes.map((node) => node.id.toLowerCase().replaceAll(/[^a-z0-9_-]/g, "-"));
  const findings = ids.flatMap((one, index): Finding[] => {
    const path = ["nodes", index, "id"];
    if (!nodeIdForm.test(one)) {
      return [{ code: "schema", message: "A node id starts with a letter and has at most 63 characters.", path }];
    }
    const first = ids.indexOf(one) === index;
    return first ? [] : [{ code: "schema", message: `Two nodes have the id ${one}.`, path }];
  });
  const nodes: Record<string, unknown> = {};
  for (const [index, node] of old.nodes.entries()) {
    const previous = old.nodes[index - 1];
    const after = previous && [
      previous.type === "condition" ? `${ids[index - 1]}.true` : (ids[index - 1] as string),
    ];
    nodes[ids[index] as string] = { ...upgradeNode(node), ...(after ? { after } : {}) };
  }
  const originOf = ([part, name, ...rest]: Path): Path => {
    if (part === "nodes" && typeof name === "string") {
      const [field, ...inside] = rest;
      const old = {
        connector: ["config", "connectorId"],
        action: ["config", "actionId"],
        input: ["config", "input"],
      }[String(field)];
      return ["nodes", Math.max(0, ids.indexOf(name)), ...(old ? [...old, ...inside] : rest)];
    }
    return part === "triggers" ? ["trigger"] : [];
  };
  return { document: { version: "1", triggers: [upgradeTrigger(old.trigger)], nodes }, findings, originOf };
}

function upgradeTrigger(trigger: V2Document["trigger"]): Trigger {
  switch (trigger.type) {
    case "trigger.manual":
      return { type: "manual" };
    case "trigger.webhook":
      return { type: "webhook" };
    case "trigger.cron":
      return { type: "cron", schedule: trigger.config.cron };
  }
}

function upgradeNode(node: V2Node): Node {
  switch (node.type) {
    case "http.request":
      return defined({ type: node.type, ...node.config });
    case "agent.execute": {
      const { task, sandbox, execution } = node.config ?? {};
      const { timeoutMs, docker, ...rest } = sandbox ?? {};
      return defined({
        ...{ type: node.type, execution: upgradeExecution(execution ?? { mode: "node" }) },
        ...{ script: task?.script, shell: task?.shell, env: task?.env },
        timeout: timeoutMs === undefined ? undefined : `${timeoutMs}ms`,
        sandbox: sandbox && defined({ ...rest, image: docker?.image }),
      });
    }
    case "connector.action": {
      const { connectorId, actionId, input, auth, execution } = node.config;
      return defined({
        ...{ type: node.type, connector: connectorId, action: actionId, input, secret: auth?.secretName },
        execution: execution && upgradeExecution(execution),
      });
    }
    case "condition":
      return { type: "condition", if: conditionOf(node.config) };
    case "parallel.join":
      return { type: "join" };
  }
}

function upgradeExecution({ mode, selector }: z.infer<typeof V2Execution>) {
  return defined({ mode: mode === "executor" ? ("node" as const) : mode, selector });
}

const operators = { eq: "=", neq: "!=", gt: ">", gte: ">=", lt: "<", lte: "<=" } as const;

/** A path begins at the input of the run unless it names `input` or `nodes` itself. */
function conditionOf({ path, op, value }: Extract<V2Node, { type: "condition" }>["config"]): string {
  const parts = path.split(".").map((part) => `\`${part}\``);
  const full = /^(input|nodes)(\.|$)/.test(path) ? parts : ["`input`", ...parts];
  const subject = full.join(".");
  if (op === "exists") return `$exists(${subject})`;
  const constant = JSON.stringify(value ?? null);
  if (op === "contains") return `$contains($string(${subject}), ${JSON.stringify(String(value ?? ""))})`;
  return `${subject} ${operators[op]} ${constant}`;
}

/** Without fields that are undefined, which are no JSON. */
function defined<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}
