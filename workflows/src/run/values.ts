// The values of a node's templates at the moment when it starts.

import type { Node, WorkflowDocument } from "../document/schema.ts";
import type { Evaluate } from "../expressions/evaluator.ts";
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

/** A value with the expressions in its texts evaluated. */
export async function fill(value: unknown, context: object, evaluate: Evaluate): Promise<unknown> {
  if (typeof value === "string") return fillText(value, context, evaluate);
  if (Array.isArray(value)) return Promise.all(value.map((one) => fill(one, context, evaluate)));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  return Object.fromEntries(
    await Promise.all(entries.map(async ([key, one]) => [key, await fill(one, context, evaluate)])),
  );
}

async function fillText(text: string, context: object, evaluate: Evaluate): Promise<unknown> {
  const { pieces } = cutTemplate(text);
  const values = await Promise.all(
    pieces.map(async (piece) =>
      "text" in piece ? piece.text : ((await evaluate(piece.expression, context)) ?? null),
    ),
  );
  const [only] = values;
  if (pieces.length === 1) return only;
  return values
    .map((value) => (typeof value === "string" ? value : value === null ? "" : JSON.stringify(value)))
    .join("");
}
