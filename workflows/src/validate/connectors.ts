// Whether the actions of connectors exist and get what they accept. What an expression will return is not known yet: values with
// expressions in them are checked when the step runs.

import type { z } from "zod";
import * as all from "../connectors/all.ts";
import type { Connector } from "../connectors/connector.ts";
import type { Finding, Path } from "../document/problem.ts";
import type { Node, WorkflowDocument } from "../document/schema.ts";
import { templatesIn } from "../expressions/template.ts";

type ActionNode = Extract<Node, { type: "connector.action" }>;

const connectors: Readonly<Record<string, Connector>> = all;

export function checkConnectors({ nodes }: WorkflowDocument): Finding[] {
  return Object.entries(nodes).flatMap(([id, node]) =>
    node.type === "connector.action" ? checkAction(["nodes", id], node) : [],
  );
}

function checkAction(path: Path, node: ActionNode): Finding[] {
  const connector = Object.hasOwn(connectors, node.connector) ? connectors[node.connector] : undefined;
  if (!connector) {
    // Agents may have connectors of their own.
    if (node.execution?.mode === "node") return [];
    const message = `The worker has no connector ${node.connector}. It has ${Object.keys(connectors).join(", ")}.`;
    return [{ code: "unknown_connector", message, path: [...path, "connector"] }];
  }
  const action = Object.hasOwn(connector.actions, node.action) ? connector.actions[node.action] : undefined;
  if (!action) {
    const message = `${node.connector} has no action ${node.action}. It has ${Object.keys(connector.actions).join(", ")}.`;
    return [{ code: "unknown_action", message, path: [...path, "action"] }];
  }
  const name = `${node.connector} ${node.action}`;
  const secret: Finding[] =
    action.secret?.required && node.secret === undefined
      ? [
          {
            code: "secret_missing",
            message: `${name} needs a secret: ${action.secret.what}. Set secret to its name.`,
            path,
          },
        ]
      : [];
  if (isTemplate(node.input)) return secret;
  const read = action.input.safeParse(node.input ?? {});
  const issues = read.success ? [] : read.error.issues;
  return [
    ...secret,
    ...issues.flatMap((issue) => findingsOf(issue, { name, path: [...path, "input"], input: node.input })),
  ];
}

function findingsOf(
  issue: z.core.$ZodIssue,
  { name, path, input }: { name: string; path: Path; input: unknown },
): Finding[] {
  const inside = issue.path.filter((part) => typeof part !== "symbol");
  const at = [...path, ...inside];
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      return {
        code: "connector_input",
        message: `${name} has no field ${[...inside, key].join(".")}.`,
        path: [...at, key],
      };
    });
  }
  if (dependsOnExpression(input, inside)) return [];
  const field = inside.join(".");
  const missing = issue.code === "invalid_type" && valueAt(input, inside) === undefined;
  const message = missing
    ? `${name} needs the field ${field}.`
    : `${field === "" ? "" : `${field}: `}${issue.message}.`;
  return [{ code: "connector_input", message, path: at }];
}

const isTemplate = (value: unknown) => typeof value === "string" && templatesIn(value).length > 0;

/** The value, one around it, or a part of it: of an object that is wrong as a whole, a part may be the reason. */
function dependsOnExpression(input: unknown, path: readonly PropertyKey[]): boolean {
  return (
    path.some((_, index) => isTemplate(valueAt(input, path.slice(0, index)))) ||
    templatesIn(valueAt(input, path)).length > 0
  );
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const part of path) at = (at as Record<PropertyKey, unknown> | null | undefined)?.[part];
  return at;
}
