// Continues one run as far as it goes now: decides, writes down what it decided, and only then does it. Everything is read from the
// cursor, so that any worker can continue after any crash.

import type { Node, WorkflowDocument } from "@holdfast/workflows/document/schema";
import { millisecondsOf } from "@holdfast/workflows/document/schema";
import type { Evaluate } from "@holdfast/workflows/expressions/evaluator";
import { type Decision, decide } from "@holdfast/workflows/run/decide";
import type { NodeEvent, RunEvent } from "@holdfast/workflows/run/events";
import { applyEvent, type NodeState, type RunState } from "@holdfast/workflows/run/state";
import { contextOf, inputOf, outputOf, type RunIdentity } from "@holdfast/workflows/run/values";
import { appendEvents } from "../runs/transitions/append.ts";
import { type ClaimedRun, releaseRun } from "../runs/transitions/claim.ts";
import { ended, perform, readResults, type Tools } from "./perform.ts";
import { isStep } from "./step.ts";

export type Continuation = Tools & { evaluate: Evaluate; pollMs: number; onProgress: (runId: string) => void };

type Signal = { node: string; attempt: number; approved: boolean; output: unknown; sender_name: string };

export async function continueRun(
  tools: Continuation,
  run: ClaimedRun,
  { document, cursor, lastSeq }: { document: WorkflowDocument; cursor: RunState; lastSeq: number },
): Promise<void> {
  const identity: RunIdentity = {
    id: run.id,
    workflow: run.workflow_id,
    startedAt: run.started_at?.toISOString() ?? "",
  };
  const fresh = new Set<string>();
  let state = cursor;
  let seq = lastSeq;

  /** False: another worker has the run. */
  const write = async (events: readonly RunEvent[]): Promise<boolean> => {
    if (events.length === 0) return true;
    state = events.reduce(applyEvent, state);
    const written = await appendEvents(
      tools.system,
      { id: run.id, claim: run.claim, lastSeq: seq },
      events,
      state,
    );
    seq = written ?? seq;
    if (written !== null) tools.onProgress(run.id);
    return written !== null;
  };

  if (run.cancel_requested && !state.cancelRequested && !(await write([{ type: "run_cancel_requested" }]))) return;
  if (run.overdue) {
    const failure = { code: "run_deadline", message: "The run took longer than it may." };
    await write([{ type: "run_failed", failure }]);
    return;
  }
  for (;;) {
    const decided = decide(document, state);
    // A run that stops skips what was to be tried again.
    const skipped = new Set(decided.flatMap((one) => (one.do === "skip" ? [one.node] : [])));
    const retries = dueRetries(state).filter(({ node }) => !skipped.has(node));
    const events = (await Promise.all([...decided, ...retries].map((one) => eventsOf(one)))).flat();
    if (!(await write(events)) || state.status !== "running") return;
    const done = [...(await performAll()), ...(await lookForEnds())];
    if (!(await write(done))) return;
    if (events.length === 0 && done.length === 0) break;
  }
  await releaseRun(tools.system, run, nextLook(state, tools.pollMs));

  async function eventsOf(decision: Decision): Promise<RunEvent[]> {
    if (decision.do === "skip") return [{ type: "node_skipped", node: decision.node }];
    if (decision.do === "end") return [await endOf(decision)];
    const { node: id, attempt } = decision;
    const node = document.nodes[id] as Node;
    try {
      const input = await inputOf(node, contextOf(state, identity), tools.evaluate);
      fresh.add(`${id}:${attempt}`);
      return [{ type: "node_started", node: id, attempt, input }, ...atOnce(node, { id, attempt, input })];
    } catch (error) {
      const failure = { code: "expression_failed", message: (error as Error).message };
      return [
        { type: "node_started", node: id, attempt, input: null },
        { type: "node_failed", node: id, attempt, failure },
      ];
    }
  }

  async function endOf(decision: Extract<Decision, { do: "end" }>): Promise<RunEvent> {
    if (decision.as === "failed") return { type: "run_failed", failure: decision.failure };
    if (decision.as === "cancelled") return { type: "run_cancelled" };
    try {
      return { type: "run_succeeded", output: await outputOf(document, state, identity, tools.evaluate) };
    } catch (error) {
      return { type: "run_failed", failure: { code: "expression_failed", message: (error as Error).message } };
    }
  }

  async function performAll(): Promise<NodeEvent[]> {
    const started = nodesThatAre("started", state).map(async ([id, node]) => {
      const described = document.nodes[id] as Node;
      if (!isStep(described)) throw new Error(`${id} is ${described.type} and cannot be under way`);
      return perform(tools, run, { id, node: described, state: node, fresh: fresh.has(`${id}:${node.attempt}`) });
    });
    return (await Promise.all(started)).filter((event) => event !== undefined);
  }

  async function lookForEnds(): Promise<NodeEvent[]> {
    const dispatched = nodesThatAre("dispatched", state);
    const results = await readResults(
      tools.system,
      run,
      dispatched.map(([, { requestId }]) => requestId),
    );
    const answered = dispatched.flatMap(([id, { attempt, requestId }]) => {
      const outcome = results.get(requestId);
      return outcome ? [ended(document.nodes[id] as Node, { id, attempt }, outcome)] : [];
    });
    const waiting = nodesThatAre("waiting", state);
    if (waiting.length === 0) return answered;
    const signals = await tools.system<Signal[]>`
      SELECT node, attempt, approved, output, sender_name FROM workflow_run_signals WHERE run_id = ${run.id}`;
    return [
      ...answered,
      ...waiting.flatMap(([id, node]) => endOfWait(document.nodes[id] as Node, { id, node, signals })),
    ];
  }
}

/** Nodes that do nothing outside end as soon as they have started. */
function atOnce(node: Node, { id, attempt, input }: { id: string; attempt: number; input: unknown }): NodeEvent[] {
  switch (node.type) {
    case "condition":
      return [{ type: "node_succeeded", node: id, attempt, output: input }];
    case "parallel":
    case "join":
      return [{ type: "node_succeeded", node: id, attempt, output: null }];
    case "wait": {
      const limit = node.for ?? node.timeout;
      const until = limit === undefined ? null : new Date(Date.now() + millisecondsOf(limit)).toISOString();
      return [{ type: "node_waiting", node: id, attempt, until }];
    }
    default:
      return [];
  }
}

type Waiting = { id: string; node: Extract<NodeState, { status: "waiting" }>; signals: readonly Signal[] };

function endOfWait(document: Node, { id, node, signals }: Waiting): NodeEvent[] {
  const { attempt, until } = node;
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
  return [
    {
      type: "node_failed",
      node: id,
      attempt,
      failure: { code: "wait_timeout", message: "Nobody answered in time." },
    },
  ];
}

function nodesThatAre<Status extends NodeState["status"]>(status: Status, state: RunState) {
  return Object.entries(state.nodes).filter(
    (entry): entry is [string, Extract<NodeState, { status: Status }>] => entry[1].status === status,
  );
}

function dueRetries(state: RunState) {
  return nodesThatAre("retrying", state)
    .filter(([, { notBefore }]) => Date.parse(notBefore) <= Date.now())
    .map(([node, { attempt }]) => ({ do: "start" as const, node, attempt }));
}

/** When there is something to do without a signal. */
function nextLook(state: RunState, pollMs: number): { wakeInMs: number | null; awaits: string[] } {
  const awaits = nodesThatAre("dispatched", state).map(([, { requestId }]) => requestId);
  const undelivered = nodesThatAre("started", state).length > 0;
  const times = [
    ...nodesThatAre("waiting", state).flatMap(([, { until }]) => (until === null ? [] : [Date.parse(until)])),
    ...nodesThatAre("retrying", state).map(([, { notBefore }]) => Date.parse(notBefore)),
  ].map((time) => Math.max(0, time - Date.now()));
  const all = [...times, ...(awaits.length > 0 || undelivered ? [pollMs] : [])];
  return { wakeInMs: all.length > 0 ? Math.min(...all) : null, awaits };
}
