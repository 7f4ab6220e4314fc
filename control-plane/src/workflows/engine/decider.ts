// What follows from what has happened in a run, until something has to be done or waited for: as events that are not written yet.

import type { Node, WorkflowDocument } from "@holdfast/workflows/document/schema";
import type { Evaluate } from "@holdfast/workflows/expressions/evaluator";
import { type Decision, decide } from "@holdfast/workflows/run/decide";
import type { NodeEvent, RunEvent } from "@holdfast/workflows/run/events";
import { applyEvent, type RunState } from "@holdfast/workflows/run/state";
import { contextOf, inputOf, outputOf, type RunIdentity } from "@holdfast/workflows/run/values";
import type { Orders } from "../runs/transitions/append.ts";
import type { ClaimedRun } from "../runs/transitions/claim.ts";
import { perform, type Tools } from "./perform.ts";
import { isStep, staysInside } from "./step.ts";
import { dueRetries, waitUntil } from "./waits.ts";

export type DecidingTools = Tools & { evaluate: Evaluate };

export function decider(
  tools: DecidingTools,
  run: ClaimedRun,
  { document, limited }: { document: WorkflowDocument; limited: (event: NodeEvent) => NodeEvent },
) {
  const identity: RunIdentity = {
    id: run.id,
    workflow: run.workflow_id,
    startedAt: run.started_at?.toISOString() ?? "",
  };
  /** Attempts that began here, as `node:attempt`. Others may have had their effect before. */
  const fresh: Set<string> = new Set();
  return { eventsAfter, fresh };

  /** What has happened, and everything that follows from it until something has to be done, or waited for. */
  async function eventsAfter(
    state: RunState,
    happened: readonly NodeEvent[],
    orders: Orders,
  ): Promise<RunEvent[]> {
    const events: RunEvent[] = [];
    let next = state;
    const note = (more: readonly RunEvent[]) => {
      events.push(...more);
      next = more.reduce(applyEvent, next);
    };
    note(happened);
    if (orders.cancelRequested && !next.cancelRequested) note([{ type: "run_cancel_requested" }]);
    if (orders.overdue) {
      const failure = { code: "run_deadline", message: "The run took longer than it may." };
      note([{ type: "run_failed", failure }]);
    }
    while (next.status === "running") {
      const decided = decide(document, next);
      // A run that stops skips what was to be tried again.
      const skipped = new Set(decided.flatMap((one) => (one.do === "skip" ? [one.node] : [])));
      const retries = dueRetries(next).filter(({ node }) => !skipped.has(node));
      const all = [...decided, ...retries];
      if (all.length === 0) break;
      const known = next;
      note((await Promise.all(all.map((one) => eventsOf(one, known)))).flat());
    }
    return events;
  }

  async function eventsOf(decision: Decision, known: RunState): Promise<RunEvent[]> {
    if (decision.do === "skip") return [{ type: "node_skipped", node: decision.node }];
    if (decision.do === "end") return [await endOf(decision, known)];
    const { node: id, attempt } = decision;
    const node = document.nodes[id] as Node;
    try {
      const input = await inputOf(node, contextOf(known, identity), tools.evaluate);
      fresh.add(`${id}:${attempt}`);
      const started: NodeEvent = { type: "node_started", node: id, attempt, input };
      return [started, ...(await atOnce(node, { id, attempt, input }))];
    } catch (error) {
      const failure = { code: "expression_failed", message: (error as Error).message };
      return [
        { type: "node_started", node: id, attempt, input: null },
        { type: "node_failed", node: id, attempt, failure },
      ];
    }
  }

  async function endOf(decision: Extract<Decision, { do: "end" }>, known: RunState): Promise<RunEvent> {
    if (decision.as === "failed") return { type: "run_failed", failure: decision.failure };
    if (decision.as === "cancelled") return { type: "run_cancelled" };
    try {
      return { type: "run_succeeded", output: await outputOf(document, known, identity, tools.evaluate) };
    } catch (error) {
      return { type: "run_failed", failure: { code: "expression_failed", message: (error as Error).message } };
    }
  }

  /** Nodes that have no effect outside end as soon as they have started: repeated after a crash, they do no harm. */
  async function atOnce(
    node: Node,
    { id, attempt, input }: { id: string; attempt: number; input: unknown },
  ): Promise<NodeEvent[]> {
    switch (node.type) {
      case "condition":
        return [{ type: "node_succeeded", node: id, attempt, output: input }];
      case "parallel":
      case "join":
        return [{ type: "node_succeeded", node: id, attempt, output: null }];
      case "wait":
        return [{ type: "node_waiting", node: id, attempt, until: waitUntil(node) }];
      default: {
        if (!isStep(node) || !staysInside(node)) return [];
        const started = { status: "started" as const, attempt, input };
        const event = await perform(tools, run, { id, node, state: started, fresh: true });
        return event ? [limited(event)] : [];
      }
    }
  }
}
