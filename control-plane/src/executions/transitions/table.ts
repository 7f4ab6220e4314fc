// The transition table of executions: every status, every event, and the outcome of each pair. The statements beside this
// file are built from it (sql.ts). They are the only ones that write an execution's status.

import { type ExecutionState, executionStates } from "@holdfast/contracts/endpoints/executions";
import { statesChangedBy } from "../../mechanisms/transition-sql.ts";

/** What an agent reports is one of several events, by the fence in sql.ts: current, `_stale` or `_repeated`. */
export const executionEvents = [
  /** An agent with room was chosen. */
  "assign",
  /** The same request is dispatched again. */
  "again",
  /** The agent has it on its disk: it says so, renews its lease or reports progress. */
  "accept",
  /** The agent has it, as it says when it connects. It may not have started. */
  "hold",
  /** Either of another delivery, or after a cancel. */
  "hold_stale",
  /** The agent holds a request whose result it has reported: the acknowledgement was lost on its way. */
  "hold_repeated",
  /** The agent did not start it and never will. */
  "decline",
  /** The same after a cancel. */
  "decline_cancelled",
  "decline_stale",
  "result_succeeded",
  "result_failed",
  /** A failure after a cancel. */
  "result_cancelled",
  /** A result of another delivery. */
  "result_stale",
  /** The accepted result, reported again. */
  "result_repeated",
  /** A person cancels it, and it may have been sent to an agent. */
  "cancel",
  /** The same, and it was not sent. */
  "cancel_unsent",
  /** No agent took it in time. */
  "wait_over",
  /** Its agent reported no result before the deadline. */
  "deadline",
  /** The same after a cancel. */
  "deadline_cancelled",
  /** Its agent was revoked: nothing is accepted from it any more. */
  "revoke",
  /** The same, and it was not sent. */
  "revoke_unsent",
] as const;
export type ExecutionEvent = (typeof executionEvents)[number];

export type Outcome =
  /** The status it gets. A result that changes the status is accepted. */
  | { to: ExecutionState }
  /** Still with its agent, under a new lease. */
  | "renewed"
  /** The status stays, and the agent is requested to stop. */
  | "asked_to_stop"
  /** Kept as evidence beside the request, which does not change. */
  | "late"
  /** Known already. */
  | "duplicate"
  | "unchanged"
  /** The checks of the table `executions` allow no row for which this could happen. */
  | "impossible";

const unchangedByClock = {
  wait_over: "unchanged",
  deadline: "unchanged",
  deadline_cancelled: "unchanged",
} as const;
const unchangedByRevocation = { revoke: "unchanged", revoke_unsent: "unchanged" } as const;

/** Of whatever is not with an agent at the moment: an agent that had it speaks of an older delivery. */
const withoutAgent = {
  accept: "impossible",
  hold: "impossible",
  hold_stale: "asked_to_stop",
  hold_repeated: "impossible",
  decline: "impossible",
  decline_cancelled: "impossible",
  decline_stale: "unchanged",
  result_succeeded: "impossible",
  result_failed: "impossible",
  result_cancelled: "impossible",
  result_stale: "late",
  result_repeated: "impossible",
} as const satisfies Partial<Record<ExecutionEvent, Outcome>>;

const ended: Record<ExecutionEvent, Outcome> = {
  assign: "unchanged",
  again: "duplicate",
  accept: "asked_to_stop",
  hold: "asked_to_stop",
  hold_stale: "asked_to_stop",
  hold_repeated: "unchanged",
  decline: "unchanged",
  decline_cancelled: "unchanged",
  decline_stale: "unchanged",
  result_succeeded: "late",
  result_failed: "late",
  result_cancelled: "late",
  result_stale: "late",
  result_repeated: "duplicate",
  cancel: "unchanged",
  cancel_unsent: "unchanged",
  ...unchangedByClock,
  ...unchangedByRevocation,
};

const withAgent = {
  assign: "unchanged",
  again: "duplicate",
  hold: "renewed",
  hold_stale: "asked_to_stop",
  hold_repeated: "impossible",
  decline_cancelled: { to: "cancelled" },
  decline_stale: "unchanged",
  result_succeeded: { to: "succeeded" },
  result_failed: { to: "failed" },
  result_cancelled: { to: "cancelled" },
  result_stale: "late",
  result_repeated: "impossible",
  cancel: "asked_to_stop",
  wait_over: "unchanged",
  deadline: { to: "failed" },
  deadline_cancelled: { to: "cancelled" },
  revoke: { to: "failed" },
} as const satisfies Partial<Record<ExecutionEvent, Outcome>>;

export const executionTable: Record<ExecutionState, Record<ExecutionEvent, Outcome>> = {
  pending: {
    ...withoutAgent,
    assign: { to: "dispatched" },
    again: "duplicate",
    cancel: { to: "cancelled" },
    cancel_unsent: { to: "cancelled" },
    ...unchangedByClock,
    wait_over: { to: "unplaced" },
    ...unchangedByRevocation,
  },
  dispatched: {
    ...withAgent,
    accept: { to: "running" },
    decline: { to: "pending" },
    cancel_unsent: { to: "cancelled" },
    // It was never sent, so another agent may run it.
    revoke_unsent: { to: "pending" },
  },
  running: {
    ...withAgent,
    accept: "renewed",
    // Its secret was erased when it was accepted, so no other agent could run it.
    decline: { to: "failed" },
    cancel_unsent: "impossible",
    revoke_unsent: "impossible",
  },
  // Only by its agent's result: whatever that agent says of the same delivery again is a repetition.
  succeeded: {
    ...ended,
    accept: "impossible",
    hold: "impossible",
    result_succeeded: "impossible",
    result_failed: "impossible",
    result_cancelled: "impossible",
  },
  failed: ended,
  cancelled: ended,
  unplaced: {
    ...ended,
    ...withoutAgent,
    again: { to: "pending" },
  },
};

/** The statuses that the event changes. */
export const statusesChangedBy = (event: ExecutionEvent) => statesChangedBy(executionTable, event);

/** The status of a new request without an agent. */
export const INITIAL_STATUS: ExecutionState = "pending";
/** The status of a request that is given to an agent, also as it is stored. */
export const ASSIGNED_STATUS = requireTarget(executionTable[INITIAL_STATUS].assign);

/** With an agent, which may be at work: these count as in flight. */
export const statusesInFlight = statusesChangedBy("deadline");

/** What a caller gets as a result; a request without an agent may still be dispatched anew. */
export const endedStatuses = executionStates.filter(
  (status) => status !== INITIAL_STATUS && !statusesInFlight.includes(status),
);

function requireTarget(outcome: Outcome): ExecutionState {
  if (typeof outcome !== "object") throw new Error("a new request cannot be given to an agent");
  return outcome.to;
}
