// The values of a node's templates at the moment when it starts.

import type { Node, WorkflowDocument } from "../document/schema.ts";
import { type Evaluate, ExpressionError } from "../expressions/evaluator.ts";
import { cutTemplate } from "../expressions/template.ts";
import { templateOf } from "../validate/expressions.ts";
import type { RunState } from "./state.ts";

export type RunIdentity = { id: string; workflow: string; startedAt: string };

/** What expressions can use; see `contextNames`. */
export function contextOf(state: RunState, run: RunIdentity): object {
  const nodes = Object.entries(state.nodes).flatMap(([id, node]): [string, object][] => {
    if (node.status === "succeeded") return [[id, { output: node.output }]];
    return node.status === "failed" ? [[id, { error: node.failure }]] : [];
  });
  return { input: state.input, nodes: Object.fromEntries(nodes), run };
}

/** Of a condition: whether it is true, as JSONata sees it. Of any other node: its templates, filled. */
export async function inputOf(node: Node, context: object, evaluate: Evaluate): Promise<unknown> {
  if (node.type === "condition") return (await evaluate(`$boolean(${node.if})`, context)) === true;
  return fill(templateOf(node), context, evaluate);
}

/** Where the document says nothing: the outputs of the nodes that nothing follows. */
export async function outputOf(document: WorkflowDocument, state: RunState, run: RunIdentity, evaluate: Evaluate) {
  if (document.output !== undefined) return fill(document.output, contextOf(state, run), evaluate);
  const followed = new Set(
    Object.values(document.nodes).flatMap(({ after = [] }) => after.map((one) => one.split(".")[0])),
  );
  const last = Object.entries(state.nodes).flatMap(([id, node]) =>
    node.status === "succeeded" && !followed.has(id) ? [[id, node.output]] : [],
  );
  return Object.fromEntries(last);
}

/** Of all results in one value, as JSON: an expression of a few characters can make a large one. */
export const MOST_FILLED_BYTES = 1024 * 1024;

/**
 * A value with the expressions in its texts evaluated, one after the other: a value with thousands of them holds the values that they can
 * use once, and leaves room for the expressions of others in between.
 */
export async function fill(value: unknown, context: object, evaluate: Evaluate): Promise<unknown> {
  let left = MOST_FILLED_BYTES;
  const evaluateOne = async (expression: string): Promise<unknown> => {
    const result = (await evaluate(expression, context)) ?? null;
    left -= Buffer.byteLength(JSON.stringify(result));
    if (left >= 0) return result;
    throw new ExpressionError("too_large", `The results have more than ${MOST_FILLED_BYTES} bytes together.`);
  };
  return fillValue(value, evaluateOne);
}

type EvaluateOne = (expression: string) => Promise<unknown>;

async function fillValue(value: unknown, evaluate: EvaluateOne): Promise<unknown> {
  if (typeof value === "string") return fillText(value, evaluate);
  if (typeof value !== "object" || value === null) return value;
  const filled: [string, unknown][] = [];
  for (const [key, one] of Object.entries(value)) {
    if (one !== undefined || Array.isArray(value)) filled.push([key, await fillValue(one, evaluate)]);
  }
  return Array.isArray(value) ? filled.map(([, one]) => one) : Object.fromEntries(filled);
}

async function fillText(text: string, evaluate: EvaluateOne): Promise<unknown> {
  const { pieces } = cutTemplate(text);
  const values: unknown[] = [];
  for (const piece of pieces) values.push("text" in piece ? piece.text : await evaluate(piece.expression));
  const [only] = values;
  if (pieces.length === 1) return only;
  return values
    .map((value) => (typeof value === "string" ? value : value === null ? "" : JSON.stringify(value)))
    .join("");
}
