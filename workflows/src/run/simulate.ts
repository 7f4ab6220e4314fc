// Runs a document without doing anything: expressions are evaluated for real, and every step ends as requested, by default successfully. For
// authors, who want to see which way a run takes.

import type { Node, WorkflowDocument } from "../document/schema.ts";
import type { Evaluate } from "../expressions/evaluator.ts";
import { type Decision, decide } from "./decide.ts";
import type { Failure, RunEvent } from "./events.ts";
import { afterFailure } from "./retry.ts";
import { applyEvent, initialState, type RunState } from "./state.ts";
import { contextOf, inputOf, outputOf, type RunIdentity } from "./values.ts";

export type Simulation = {
  input: unknown;
  /** By node. */
  outputs: Readonly<Record<string, unknown>>;
  /** Nodes of which every attempt fails. */
  failing: ReadonlySet<string>;
  now: Date;
};

export async function simulate(
  document: WorkflowDocument,
  given: Simulation,
  evaluate: Evaluate,
): Promise<{ events: RunEvent[]; state: RunState }> {
  const run: RunIdentity = { id: "simulated", workflow: "simulated", startedAt: given.now.toISOString() };
  const events: RunEvent[] = [];
  let state = initialState(document);
  const note = (event: RunEvent) => {
    state = applyEvent(state, event);
    events.push(event);
  };
  note({ type: "run_started", input: given.input });
  while (state.status === "running") {
    const decided = decide(document, state);
    const decisions = decided.length > 0 ? decided : dueRetries(state);
    if (decisions.length === 0) throw new Error("the run waits for something that a simulation does not have");
    for (const decision of decisions) {
      if (decision.do === "skip") note({ type: "node_skipped", node: decision.node });
      else if (decision.do === "end") note(await endOf(document, { state, run, decision }, evaluate));
      else await start(document.nodes[decision.node] as Node, decision);
    }
  }
  return { events, state };

  async function start(node: Node, { node: id, attempt }: { node: string; attempt: number }): Promise<void> {
    const evaluated = await attemptTo(() => inputOf(node, contextOf(state, run), evaluate));
    note({ type: "node_started", node: id, attempt, input: evaluated.ok ? evaluated.value : null });
    const failure = evaluated.ok
      ? given.failing.has(id) && { code: "simulated", message: "It was simulated to fail." }
      : evaluated.failure;
    if (failure) {
      note(afterFailure(node, { node: id, attempt, failure, outcomeKnown: true }, { now: given.now, random: 0 }));
      return;
    }
    if (node.type === "wait") note({ type: "node_waiting", node: id, attempt, until: null });
    const output = node.type === "condition" ? evaluated.ok && evaluated.value : (given.outputs[id] ?? null);
    note({ type: "node_succeeded", node: id, attempt, output });
  }
}

function dueRetries(state: RunState): Decision[] {
  return Object.entries(state.nodes).flatMap(([node, one]): Decision[] =>
    one.status === "retrying" ? [{ do: "start", node, attempt: one.attempt }] : [],
  );
}

async function endOf(
  document: WorkflowDocument,
  { state, run, decision }: { state: RunState; run: RunIdentity; decision: Extract<Decision, { do: "end" }> },
  evaluate: Evaluate,
): Promise<RunEvent> {
  if (decision.as === "failed") return { type: "run_failed", failure: decision.failure };
  if (decision.as === "cancelled") return { type: "run_cancelled" };
  const output = await attemptTo(() => outputOf(document, state, run, evaluate));
  return output.ok
    ? { type: "run_succeeded", output: output.value }
    : { type: "run_failed", failure: output.failure };
}

type Attempted = { ok: true; value: unknown } | { ok: false; failure: Failure };

async function attemptTo(work: () => Promise<unknown>): Promise<Attempted> {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    return { ok: false, failure: { code: "expression_failed", message: (error as Error).message } };
  }
}
