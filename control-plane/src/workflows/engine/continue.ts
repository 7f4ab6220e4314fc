// Continues one run as far as it goes now: decides, writes down what it decided, and only then does it. Everything is read from the
// cursor, so that any worker can continue after any crash. What has ended and what follows from it are written together: a commit for
// each step, not two.

import { setTimeout as pause } from "node:timers/promises";
import type { Node, WorkflowDocument } from "@holdfast/workflows/document/schema";
import type { Evaluate } from "@holdfast/workflows/expressions/evaluator";
import { type Decision, decide } from "@holdfast/workflows/run/decide";
import type { NodeEvent, RunEvent } from "@holdfast/workflows/run/events";
import { applyEvent, type RunState } from "@holdfast/workflows/run/state";
import { contextOf, inputOf, outputOf, type RunIdentity } from "@holdfast/workflows/run/values";
import { appendEvents, readOrders } from "../runs/transitions/append.ts";
import { type ClaimedRun, releaseRun } from "../runs/transitions/claim.ts";
import { outputLimit } from "./output-limit.ts";
import { ended, perform, readResults, type Tools } from "./perform.ts";
import { isStep, requestIdFor, runsOnAgent, staysInside } from "./step.ts";
import { dueRetries, nodesThatAre, readEndsOfWaits, untilNextTime, waitUntil } from "./waits.ts";

export type Continuation = Tools & { evaluate: Evaluate; pollMs: number; onProgress: (runId: string) => void };

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
  let state = cursor;
  let seq = lastSeq;
  let orders = { cancelRequested: run.cancel_requested, overdue: run.overdue };
  const limited = outputLimit(cursor);
  /** Attempts that began in this continuation. */
  const fresh = new Set<string>();
  /** Attempts that were carried out here, or are. A branch does not wait for the steps of another one. */
  const tried = new Set<string>();
  const underWay = new Set<Promise<void>>();
  const ends: NodeEvent[] = [];
  let broken: Error | undefined;

  for (;;) {
    const events = await eventsAfter([...ends.splice(0), ...(await lookForEnds())].map(limited));
    if (!(await write(events)) || state.status !== "running") return;
    performStarted();
    if (broken) throw broken;
    if (events.length > 0 || ends.length > 0) continue;
    if (underWay.size === 0) break;
    const wakeInMs = Math.min(untilNextTime(state) ?? tools.pollMs, tools.pollMs);
    const looked = new AbortController();
    await Promise.race([
      ...underWay,
      pause(wakeInMs, undefined, { signal: looked.signal }).catch(() => undefined),
    ]);
    looked.abort();
    if (broken) throw broken;
    if (ends.length === 0) orders = (await readOrders(tools.system, run)) ?? orders;
  }
  await releaseRun(tools.system, run, nextLook());

  /** False: another worker has the run. */
  async function write(events: readonly RunEvent[]): Promise<boolean> {
    if (events.length === 0) return true;
    state = events.reduce(applyEvent, state);
    const appended = await appendEvents(
      tools.system,
      { id: run.id, claim: run.claim, lastSeq: seq },
      events,
      state,
    );
    if (!appended) return false;
    seq += events.length;
    orders = appended;
    tools.onProgress(run.id);
    return true;
  }

  /** What has happened, and everything that follows from it until something has to be done, or waited for. */
  async function eventsAfter(happened: readonly NodeEvent[]): Promise<RunEvent[]> {
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
        if (!staysInside(node)) return [];
        const started = { status: "started" as const, attempt, input };
        const event = await perform(tools, run, { id, node, state: started, fresh: true });
        return event ? [limited(event)] : [];
      }
    }
  }

  function performStarted(): void {
    for (const [id, node] of nodesThatAre("started", state)) {
      const attempt = `${id}:${node.attempt}`;
      const described = document.nodes[id] as Node;
      if (tried.has(attempt)) continue;
      if (!isStep(described)) throw new Error(`${id} is ${described.type} and cannot be under way`);
      tried.add(attempt);
      const work = perform(tools, run, { id, node: described, state: node, fresh: fresh.has(attempt) })
        .then((event) => void (event && ends.push(event)))
        .catch((error: Error) => {
          broken ??= error;
        })
        .finally(() => underWay.delete(work));
      underWay.add(work);
    }
  }

  async function lookForEnds(): Promise<NodeEvent[]> {
    const dispatched = nodesThatAre("dispatched", state);
    const requests = dispatched.map(([, { requestId }]) => requestId);
    const results = await readResults(tools.system, run, requests);
    const answered = dispatched.flatMap(([id, { attempt, requestId }]) => {
      const outcome = results.get(requestId);
      return outcome ? [ended(document.nodes[id] as Node, { id, attempt }, outcome)] : [];
    });
    const waiting = nodesThatAre("waiting", state);
    return [...answered, ...(await readEndsOfWaits(tools.system, run.id, { ...document, waiting }))];
  }

  /** When there is something to do without a signal. What the gateway did not take may have reached it all the same. */
  function nextLook(): { wakeInMs: number | null; awaits: string[] } {
    const undelivered = nodesThatAre("started", state).flatMap(([id, { attempt }]) => {
      const node = document.nodes[id] as Node;
      return isStep(node) && runsOnAgent(node) ? [requestIdFor(run, id, attempt)] : [];
    });
    const awaits = [...nodesThatAre("dispatched", state).map(([, { requestId }]) => requestId), ...undelivered];
    const next = untilNextTime(state);
    return { wakeInMs: awaits.length > 0 ? Math.min(next ?? tools.pollMs, tools.pollMs) : next, awaits };
  }
}
