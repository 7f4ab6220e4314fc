// The document that tests one step of another: that step, after stand-ins that return what it shall read of the steps before it. So a
// test is a run like any other.

import { parseExpression } from "../expressions/references.ts";
import { cutTemplate, templatesIn } from "../expressions/template.ts";
import { templateOf } from "../validate/expressions.ts";
import type { Node, WorkflowDocument } from "./schema.ts";

export const testableTypes: ReadonlySet<Node["type"]> = new Set([
  "connector.action",
  "agent.execute",
  "http.request",
  "condition",
]);

/** Steps whose outputs it reads. */
export function stepsReadBy(node: Node): string[] {
  const pieces = templatesIn(templateOf(node)).flatMap(({ text }) => cutTemplate(text).pieces);
  const expressions = pieces.flatMap((piece) => ("expression" in piece ? [piece.expression] : []));
  if (node.type === "condition") expressions.push(node.if);
  const parsed = expressions.map(parseExpression);
  return [...new Set(parsed.flatMap((one) => (one.ok ? one.used.nodes.map(({ id }) => id) : [])))];
}

/** A text says why it cannot be tested. */
export function stepTestOf(
  document: WorkflowDocument,
  id: string,
  outputs: Readonly<Record<string, unknown>>,
): WorkflowDocument | string {
  const node = Object.hasOwn(document.nodes, id) ? document.nodes[id] : undefined;
  if (!node) return `There is no step ${id}.`;
  if (!testableTypes.has(node.type)) return `${id} is ${node.type}, which does nothing that can be tested.`;
  const before = stepsReadBy(node);
  const missing = before.filter((one) => !Object.hasOwn(outputs, one));
  if (missing.length > 0) return `${id} reads the output of ${missing.join(", ")}, and none is given for it.`;
  const standIns = before.map((one): [string, Node] => [
    one,
    {
      ...{ type: "connector.action", title: `Given output of ${one}`, connector: "echo", action: "echo" },
      input: literal(outputs[one]),
    },
  ]);
  const { after: _, ...alone } = node;
  const tested = before.length > 0 ? { ...alone, after: before } : alone;
  return { version: "1", nodes: { ...Object.fromEntries(standIns), [id]: tested } };
}

/** Texts that stand for themselves, whatever is in them. */
function literal(value: unknown) {
  return JSON.parse(JSON.stringify(value ?? null).replaceAll("${{", () => "$${{"));
}
