// The transition table of runs: every state, every event that changes a run as a whole, and the outcome of each pair. The statements
// beside this file are built from it; they are the only ones that write a run's status. What happens to single nodes is in
// `workflows/src/run/state.ts`.

import { type RunState, runStates } from "@holdfast/contracts/endpoints/runs";
import { ConstantSql } from "../../../database/connect.ts";
import { caseOf, isOneOf, literal, statesWhere } from "../../../mechanisms/transition-sql.ts";

export const runEvents = ["start", "advance", "run_succeeded", "run_failed", "run_cancelled", "retry"] as const;
export type RunTransition = (typeof runEvents)[number];

/** `refused`: the statement changes nothing. */
export type Outcome = { to: RunState } | "stays" | "refused";

const ended: Record<RunTransition, Outcome> = {
  start: "refused",
  advance: "refused",
  run_succeeded: "refused",
  run_failed: "refused",
  run_cancelled: "refused",
  retry: "refused",
};

const runTable: Record<RunState, Record<RunTransition, Outcome>> = {
  // Waits until the organization has room for one more.
  queued: { ...ended, start: { to: "running" } },
  running: {
    start: "refused",
    advance: "stays",
    run_succeeded: { to: "succeeded" },
    run_failed: { to: "failed" },
    run_cancelled: { to: "cancelled" },
    retry: "refused",
  },
  succeeded: ended,
  // A person lets it go on where it failed; it waits for room like any other.
  failed: { ...ended, retry: { to: "queued" } },
  cancelled: ended,
};

const targetOf = (outcome: Outcome) => (typeof outcome === "object" ? outcome.to : undefined);

const INITIAL_STATE: RunState = "queued";
export const initialState = literal(INITIAL_STATE);
const statesOpen = [...statesAllowing("start"), ...statesAllowing("advance")];

/** Rows of `r` to which the event can happen. */
export const allows = (event: RunTransition) => isOneOf("r.status", statesAllowing(event));

function statesAllowing(event: RunTransition): RunState[] {
  return statesWhere(runTable, event, (outcome) => outcome !== "refused");
}

/** The state of `r` after the event in this column. */
export const stateAfter = (column: string) =>
  caseOf(
    column,
    runEvents.map((event) => [event, afterOne(event)]),
    new ConstantSql("r.status"),
  );

const afterOne = (event: RunTransition) =>
  caseOf(
    "r.status",
    runStates.flatMap((state) => {
      const to = targetOf(runTable[state][event]);
      return to === undefined ? [] : [[state, to] as const];
    }),
    new ConstantSql("r.status"),
  );

export const isEnded = (column: string) =>
  isOneOf(
    column,
    runStates.filter((state) => !statesOpen.includes(state)),
  );
