// The state of a run, as its events say. A total table decides which event a node can have in each of its states; an event that cannot
// happen is an error of whoever wrote it, never a state.

import type { WorkflowDocument } from "../document/schema.ts";
import type { Failure, NodeEvent, RunEvent } from "./events.ts";

export type NodeState =
  /** `attempt`: the number of its next one, if it had some before the run was retried. */
  | { status: "pending"; attempt?: number }
  | { status: "started"; attempt: number; input: unknown }
  | { status: "dispatched"; attempt: number; requestId: string }
  | { status: "waiting"; attempt: number; until: string | null }
  | { status: "retrying"; attempt: number; notBefore: string }
  | { status: "succeeded"; attempt: number; output: unknown }
  | { status: "failed"; attempt: number; failure: Failure }
  | { status: "skipped"; attempt?: number };
export type NodeStatus = NodeState["status"];

export type RunStatus = "running" | "succeeded" | "failed" | "cancelled";

export type RunState = {
  status: RunStatus;
  cancelRequested: boolean;
  input: unknown;
  output: unknown;
  failure: Failure | null;
  nodes: Readonly<Record<string, NodeState>>;
};

type NodeEventType = NodeEvent["type"];

/** Whether the event can happen to a node in this state. */
const nodeTable: Record<NodeStatus, Record<NodeEventType, boolean>> = {
  pending: only("node_started", "node_skipped"),
  // A control node ends at once; a step may be dispatched, wait, end or be tried again.
  started: only("node_dispatched", "node_waiting", "node_succeeded", "node_failed", "node_retried"),
  dispatched: only("node_succeeded", "node_failed", "node_retried"),
  // Skipped when the run ends before what it waits for happens.
  waiting: only("node_succeeded", "node_failed", "node_skipped"),
  retrying: only("node_started", "node_skipped"),
  succeeded: only(),
  failed: only(),
  skipped: only(),
};

function only(...events: NodeEventType[]): Record<NodeEventType, boolean> {
  const has = (event: NodeEventType) => events.includes(event);
  return {
    node_started: has("node_started"),
    node_dispatched: has("node_dispatched"),
    node_waiting: has("node_waiting"),
    node_succeeded: has("node_succeeded"),
    node_failed: has("node_failed"),
    node_retried: has("node_retried"),
    node_skipped: has("node_skipped"),
  };
}

export class ImpossibleEvent extends Error {
  override name = "ImpossibleEvent";
}

/** Of a run that has only been created. */
export function initialState(document: WorkflowDocument): RunState {
  const nodes = Object.fromEntries(Object.keys(document.nodes).map((id) => [id, { status: "pending" as const }]));
  return { status: "running", cancelRequested: false, input: null, output: null, failure: null, nodes };
}

export function applyEvent(state: RunState, event: RunEvent): RunState {
  if (event.type === "run_retried") return retried(state, event);
  if (state.status !== "running") throw new ImpossibleEvent(`${event.type} after the run was ${state.status}`);
  switch (event.type) {
    case "run_started":
      return { ...state, input: event.input };
    case "run_cancel_requested":
      return { ...state, cancelRequested: true };
    case "run_succeeded":
      return { ...state, status: "succeeded", output: event.output };
    case "run_failed":
      return { ...state, status: "failed", failure: event.failure };
    case "run_cancelled":
      return { ...state, status: "cancelled" };
    default:
      return { ...state, nodes: { ...state.nodes, [event.node]: nodeAfter(state.nodes[event.node], event) } };
  }
}

export function rebuild(document: WorkflowDocument, events: readonly RunEvent[]): RunState {
  return events.reduce(applyEvent, initialState(document));
}

function nodeAfter(node: NodeState | undefined, event: NodeEvent): NodeState {
  if (!node) throw new ImpossibleEvent(`${event.type} of ${event.node}, which is not in the document`);
  if (!nodeTable[node.status][event.type]) {
    throw new ImpossibleEvent(`${event.type} of ${event.node}, which is ${node.status}`);
  }
  // What was tried before keeps count: a retry of the run must not repeat the id of an attempt.
  if (event.type === "node_skipped")
    return "attempt" in node ? { status: "skipped", attempt: nextAttempt(node) } : { status: "skipped" };
  const { attempt } = event;
  const expected = expectedAttempt(node);
  if (attempt !== expected) {
    throw new ImpossibleEvent(`${event.type} of attempt ${attempt} of ${event.node}; it is at ${expected}`);
  }
  switch (event.type) {
    case "node_started":
      return { status: "started", attempt, input: event.input };
    case "node_dispatched":
      return { status: "dispatched", attempt, requestId: event.requestId };
    case "node_waiting":
      return { status: "waiting", attempt, until: event.until };
    case "node_succeeded":
      return { status: "succeeded", attempt, output: event.output };
    case "node_failed":
      return { status: "failed", attempt, failure: event.failure };
    case "node_retried":
      return { status: "retrying", attempt: attempt + 1, notBefore: event.notBefore };
  }
}

function retried(state: RunState, event: Extract<RunEvent, { type: "run_retried" }>): RunState {
  if (state.status !== "failed") throw new ImpossibleEvent(`run_retried of a run that is ${state.status}`);
  const kept = Object.entries(state.nodes).filter(([id]) => !event.removed.includes(id));
  const fresh = [...event.again, ...event.reset].map((id): [string, NodeState] => {
    const node = state.nodes[id];
    return [
      id,
      node && "attempt" in node ? { status: "pending", attempt: nextAttempt(node) } : { status: "pending" },
    ];
  });
  return {
    ...state,
    status: "running",
    cancelRequested: false,
    failure: null,
    output: null,
    nodes: Object.fromEntries([...kept, ...fresh]),
  };
}

/** Of one that has ended or is abandoned. A skipped or waiting node has had none of the number that it carries, unless it waited. */
function nextAttempt(node: NodeState): number {
  const attempt = expectedAttempt(node);
  return node.status === "failed" || node.status === "waiting" ? attempt + 1 : attempt;
}

/** Attempts count from 1; a node that is tried again has the number of its next attempt. */
function expectedAttempt(node: NodeState): number {
  return ("attempt" in node && node.attempt) || 1;
}
