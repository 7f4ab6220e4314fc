// What a run does next: which nodes start, which are skipped, and when it is over. A function of the document and the state, so that it
// can be asked again at any time, by any process.

import { type Edge, edgesInto } from "../document/edges.ts";
import type { Node, WorkflowDocument } from "../document/schema.ts";
import type { Failure } from "./events.ts";
import type { NodeState, RunState } from "./state.ts";

export type Decision =
  | { do: "start"; node: string; attempt: number }
  | { do: "skip"; node: string }
  | { do: "end"; as: "succeeded" | "cancelled" }
  | { do: "end"; as: "failed"; failure: Failure };

/** Empty: the run waits for something. */
export function decide(document: WorkflowDocument, state: RunState): Decision[] {
  if (state.status !== "running") return [];
  const failed = unhandledFailure(document, state);
  const stops = state.cancelRequested || failed !== undefined;
  const entries = Object.entries(state.nodes);
  const next = entries.flatMap(([id, node]): Decision[] => {
    if (stops) return isAbandonable(node) ? [{ do: "skip", node: id }] : [];
    if (node.status !== "pending") return [];
    const edges = edgesInto(document.nodes[id] as Node).map((edge) => isTaken(document, state, edge));
    const turn = turnBy(document.nodes[id] as Node, edges);
    if (turn === "later") return [];
    return [turn === "start" ? { do: "start", node: id, attempt: node.attempt ?? 1 } : { do: "skip", node: id }];
  });
  if (next.length > 0 || entries.some(([, node]) => !isOver(node))) return next;
  if (failed) return [{ do: "end", as: "failed", failure: failed }];
  return [{ do: "end", as: state.cancelRequested ? "cancelled" : "succeeded" }];
}

const isOver = ({ status }: NodeState) => status === "succeeded" || status === "failed" || status === "skipped";

/** Nothing of it runs anywhere. */
const isAbandonable = ({ status }: NodeState) =>
  status === "pending" || status === "waiting" || status === "retrying";

type Taken = boolean | "undecided";

function isTaken(document: WorkflowDocument, { nodes }: RunState, { from, port }: Edge): Taken {
  const source = nodes[from];
  switch (source?.status) {
    case "succeeded": {
      const isCondition = document.nodes[from]?.type === "condition";
      return port === (isCondition ? String(source.output === true) : "succeeded");
    }
    case "failed":
      return port === "failed";
    case "skipped":
      return false;
    default:
      return "undecided";
  }
}

type Turn = "start" | "skip" | "later";

/** The rule of edges, by which branches part and meet. */
export function turnBy(node: Node, edges: readonly Taken[]): Turn {
  if (edges.length === 0) return "start";
  const some = edges.includes(true);
  const open = edges.includes("undecided");
  if (node.type === "join") {
    if (node.mode === "any") return some ? "start" : open ? "later" : "skip";
    return edges.includes(false) ? "skip" : open ? "later" : "start";
  }
  return open ? "later" : some ? "start" : "skip";
}

/** Nodes whose failure no edge follows. */
export function unhandledNodes({ nodes }: WorkflowDocument, state: RunState): string[] {
  const handled = new Set(Object.values(nodes).flatMap(({ after = [] }) => after));
  return Object.entries(state.nodes).flatMap(([id, node]) =>
    node.status === "failed" && !handled.has(`${id}.failed`) ? [id] : [],
  );
}

/** A failure that no edge follows. */
function unhandledFailure(document: WorkflowDocument, state: RunState): Failure | undefined {
  const [id] = unhandledNodes(document, state);
  const node = id === undefined ? undefined : state.nodes[id];
  return node?.status === "failed"
    ? { code: node.failure.code, message: `${id}: ${node.failure.message}` }
    : undefined;
}
