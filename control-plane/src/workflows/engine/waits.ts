// Nodes that wait: for a time, for a person or an event, for their next attempt. And when there is something to do without a signal.

import { millisecondsOf, type Node } from "@holdfast/workflows/document/schema";
import type { NodeEvent } from "@holdfast/workflows/run/events";
import type { NodeState, NodeStatus, RunState } from "@holdfast/workflows/run/state";
import type { Sql } from "../../database/connect.ts";

type Signal = { node: string; attempt: number; approved: boolean; output: unknown; sender_name: string };
type InState<Status extends NodeStatus> = [id: string, state: Extract<NodeState, { status: Status }>];

export function nodesThatAre<Status extends NodeStatus>(status: Status, { nodes }: RunState): InState<Status>[] {
  return Object.entries(nodes).filter((entry): entry is InState<Status> => entry[1].status === status);
}

/** Of the nodes that wait, what has ended. */
export async function readEndsOfWaits(
  system: Sql,
  runId: string,
  { nodes, waiting }: { nodes: Readonly<Record<string, Node>>; waiting: readonly InState<"waiting">[] },
): Promise<NodeEvent[]> {
  if (waiting.length === 0) return [];
  const signals = await system<Signal[]>`
    SELECT node, attempt, approved, output, sender_name FROM workflow_run_signals WHERE run_id = ${runId}`;
  return waiting.flatMap(([id, state]) => endOfWait(nodes[id] as Node, { id, state, signals }));
}

type Waiting = { id: string; state: InState<"waiting">[1]; signals: readonly Signal[] };

function endOfWait(document: Node, { id, state, signals }: Waiting): NodeEvent[] {
  const { attempt, until } = state;
  const signal = signals.find((one) => one.node === id && one.attempt === attempt);
  if (signal?.approved) {
    return [
      { type: "node_succeeded", node: id, attempt, output: { by: signal.sender_name, value: signal.output } },
    ];
  }
  if (signal) {
    const failure = { code: "rejected", message: `${signal.sender_name} rejected it.` };
    return [{ type: "node_failed", node: id, attempt, failure }];
  }
  if (until === null || Date.parse(until) > Date.now()) return [];
  if (document.type === "wait" && document.for !== undefined) {
    return [{ type: "node_succeeded", node: id, attempt, output: null }];
  }
  const failure = { code: "wait_timeout", message: "Nobody answered in time." };
  return [{ type: "node_failed", node: id, attempt, failure }];
}

/** Until when a node waits that starts now. */
export function waitUntil({ for: time, timeout }: Extract<Node, { type: "wait" }>): string | null {
  const limit = time ?? timeout;
  return limit === undefined ? null : new Date(Date.now() + millisecondsOf(limit)).toISOString();
}

export function dueRetries(state: RunState) {
  return nodesThatAre("retrying", state)
    .filter(([, { notBefore }]) => Date.parse(notBefore) <= Date.now())
    .map(([node, { attempt }]) => ({ do: "start" as const, node, attempt }));
}

/** Milliseconds until a time has come that a node waits for. Null: none does. */
export function untilNextTime(state: RunState): number | null {
  const times = [
    ...nodesThatAre("waiting", state).flatMap(([, { until }]) => (until === null ? [] : [Date.parse(until)])),
    ...nodesThatAre("retrying", state).map(([, { notBefore }]) => Date.parse(notBefore)),
  ];
  return times.length > 0 ? Math.max(0, Math.min(...times) - Date.now()) : null;
}
