// Continues one run as far as it goes now: decides, writes down what it decided, and only then does it. Everything is read from the
// cursor, so that any worker can continue after any crash. What has ended and what follows from it are written together: a commit for
// each step, not two.

import { setTimeout as pause } from "node:timers/promises";
import type { Node, WorkflowDocument } from "@holdfast/workflows/document/schema";
import type { NodeEvent, RunEvent } from "@holdfast/workflows/run/events";
import { applyEvent, type RunState } from "@holdfast/workflows/run/state";
import { appendEvents, type Orders, readOrders } from "../runs/transitions/append.ts";
import { type ClaimedRun, releaseRun } from "../runs/transitions/claim.ts";
import { type DecidingTools, decider } from "./decider.ts";
import { outputLimit } from "./output-limit.ts";
import { ended, perform, readResults } from "./perform.ts";
import { isStep, requestIdFor, runsOnAgent } from "./step.ts";
import { nodesThatAre, readEndsOfWaits, untilNextTime } from "./waits.ts";

export type Continuation = DecidingTools & { pollMs: number; onProgress: (runId: string) => void };

export async function continueRun(
  tools: Continuation,
  run: ClaimedRun,
  { document, cursor, lastSeq }: { document: WorkflowDocument; cursor: RunState; lastSeq: number },
): Promise<void> {
  let state = cursor;
  let seq = lastSeq;
  let orders: Orders = { cancelRequested: run.cancel_requested, overdue: run.overdue };
  const limited = outputLimit(cursor);
  const { eventsAfter, fresh } = decider(tools, run, { document, limited });
  /** Attempts that were carried out here, or are. A branch does not wait for the steps of another one. */
  const tried = new Set<string>();
  const underWay = new Set<Promise<void>>();
  const ends: NodeEvent[] = [];
  let broken: Error | undefined;

  for (;;) {
    const events = await eventsAfter(state, [...ends.splice(0), ...(await lookForEnds())].map(limited), orders);
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
