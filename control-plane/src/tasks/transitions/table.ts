// The transition table of tasks: every status, every event, and the outcome of each pair. The statements beside this file
// are built from it (sql.ts): their conditions, the statuses they write and what they report are cells of this table.
// They are the only ones that write a task's row.

import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import { statesChangedBy, statesWhere, statesWithExit, targetOf } from "../../mechanisms/transition-sql.ts";

/** What a node reports is one of three events, by the generation fence in sql.ts: current, `_stale` or `_repeated`. */
export const taskEvents = [
  /** The node has room and is offered the task. */
  "claim",
  /** The node holds the task as its current delivery. */
  "hold",
  /** The node holds the task as an older delivery, after a cancel, or out of order. */
  "hold_stale",
  /** The node holds a task whose result it has reported: the response was lost on its way. */
  "hold_repeated",
  "progress",
  "progress_stale",
  "result_succeeded",
  "result_failed",
  "result_cancelled",
  /** A result of another delivery. */
  "result_stale",
  /** The accepted result, reported again. */
  "result_repeated",
  /** A person or a producer cancels it. */
  "cancel",
  /** It was not delivered before it expired. */
  "not_delivered",
  /** The lease ran out, the type is idempotent and there is time left. */
  "requeue",
  /** The lease ran out after a cancel: no response is expected. */
  "abandon",
  /** The lease ran out, and so did the time for a result. */
  "no_result",
] as const;
export type TaskEvent = (typeof taskEvents)[number];

export type Outcome =
  /** The status it gets. A result that changes the status is accepted. */
  | { to: TaskStatus }
  /** Still with the node, under a new lease. */
  | "renewed"
  /** The status stays, and the node is requested to stop. */
  | "asked_to_stop"
  /** Kept as evidence beside the task, which does not change. */
  | "late"
  /** Known already. */
  | "duplicate"
  | "unchanged"
  /** The checks of the table `tasks` allow no row for which this could happen. */
  | "impossible";

const ended: Record<TaskEvent, Outcome> = {
  claim: "unchanged",
  hold: "asked_to_stop",
  hold_stale: "asked_to_stop",
  hold_repeated: "unchanged",
  progress: "asked_to_stop",
  progress_stale: "asked_to_stop",
  result_succeeded: "late",
  result_failed: "late",
  result_cancelled: "late",
  result_stale: "late",
  result_repeated: "duplicate",
  cancel: "unchanged",
  not_delivered: "unchanged",
  requeue: "unchanged",
  abandon: "unchanged",
  no_result: "unchanged",
};

export const taskTable: Record<TaskStatus, Record<TaskEvent, Outcome>> = {
  queued: {
    claim: { to: "dispatched" },
    // A claim is committed without waiting for the disk: after a crash the node knows more than the database.
    hold: { to: "dispatched" },
    hold_stale: "asked_to_stop",
    hold_repeated: "impossible",
    progress: "unchanged",
    progress_stale: "asked_to_stop",
    result_succeeded: { to: "completed" },
    result_failed: { to: "failed" },
    result_cancelled: { to: "cancelled" },
    result_stale: "late",
    result_repeated: "impossible",
    cancel: { to: "cancelled" },
    not_delivered: { to: "expired" },
    requeue: "unchanged",
    abandon: "unchanged",
    no_result: "unchanged",
  },
  dispatched: {
    // Offered again to a node that did not get the response: the same delivery.
    claim: "renewed",
    hold: "renewed",
    hold_stale: "asked_to_stop",
    hold_repeated: "impossible",
    progress: "renewed",
    progress_stale: "asked_to_stop",
    result_succeeded: { to: "completed" },
    result_failed: { to: "failed" },
    result_cancelled: { to: "cancelled" },
    result_stale: "late",
    result_repeated: "impossible",
    cancel: "asked_to_stop",
    // The node may have started in time: from now on, its lease decides.
    not_delivered: "unchanged",
    requeue: { to: "queued" },
    abandon: { to: "cancelled" },
    no_result: { to: "expired" },
  },
  completed: ended,
  failed: ended,
  expired: { ...ended, hold_repeated: "impossible", result_repeated: "impossible" },
  cancelled: ended,
};

/** The status of a new task that is not claimed. */
export const INITIAL_STATUS: TaskStatus = "queued";

/** The status of a task that its node claims as it is created. */
export const CLAIMED_STATUS = requireTarget(taskTable[INITIAL_STATUS].claim);

/** The statuses that the event changes. */
export const statusesChangedBy = (event: TaskEvent) => statesChangedBy(taskTable, event);

/** The statuses in which the event has this outcome. */
export const statusesWith = (event: TaskEvent, outcome: Exclude<Outcome, object>) =>
  statesWhere(taskTable, event, (one) => one === outcome);

/** The statuses that a task leaves again; every other one is an end. */
export const openStatuses = statesWithExit(taskTable, targetOf);

function requireTarget(outcome: Outcome): TaskStatus {
  if (typeof outcome !== "object") throw new Error("a new task cannot be claimed");
  return outcome.to;
}
