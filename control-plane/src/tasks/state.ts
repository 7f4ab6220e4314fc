// The life of a task: every status and every event, and what comes of each pair. Nothing else
// decides about `status`; the SQL beside this file does what the table says, and a test compares
// the two, cell by cell, on a real database.

import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";

export const taskEvents = [
  /** The node has room and is offered the task. */
  "claim",
  /** The node says that it has the task, of this delivery or a newer one than we know. */
  "hold",
  "result_succeeded",
  "result_failed",
  "result_cancelled",
  /** A person or a producer wants it no more. */
  "cancel",
  /** The lease ran out, the type is idempotent and there is time left. */
  "requeue",
  /** The lease ran out after a cancel: the node will not answer any more. */
  "give_up",
  /** Its time is over: not taken in time, or no result in time. */
  "expire",
] as const;
export type TaskEvent = (typeof taskEvents)[number];

export type Outcome =
  /** The status it gets. */
  | { to: TaskStatus }
  /** Still with the node; the lease is as long as a new one. */
  | "renewed"
  /** Still with the node, which is told to stop. */
  | "asked_to_stop"
  /** Kept as evidence beside the task, which stays as it ended. */
  | "late"
  | "nothing";

const ended: Record<TaskEvent, Outcome> = {
  claim: "nothing",
  hold: "asked_to_stop",
  result_succeeded: "late",
  result_failed: "late",
  result_cancelled: "late",
  cancel: "nothing",
  requeue: "nothing",
  give_up: "nothing",
  expire: "nothing",
};

export const taskTable: Record<TaskStatus, Record<TaskEvent, Outcome>> = {
  queued: {
    claim: { to: "dispatched" },
    // A claim is committed without waiting for the disk: after a crash the node knows more than we do.
    hold: { to: "dispatched" },
    result_succeeded: { to: "completed" },
    result_failed: { to: "failed" },
    result_cancelled: { to: "cancelled" },
    cancel: { to: "cancelled" },
    requeue: "nothing",
    give_up: "nothing",
    expire: { to: "expired" },
  },
  dispatched: {
    // Offered again to a node that did not get the answer: the same delivery.
    claim: "renewed",
    hold: "renewed",
    result_succeeded: { to: "completed" },
    result_failed: { to: "failed" },
    result_cancelled: { to: "cancelled" },
    cancel: "asked_to_stop",
    requeue: { to: "queued" },
    give_up: { to: "cancelled" },
    expire: { to: "expired" },
  },
  // By its node's own result, which need not be told to stop.
  completed: { ...ended, hold: "nothing" },
  failed: { ...ended, hold: "nothing" },
  expired: ended,
  cancelled: ended,
};

/** What a lapsed lease means for a task, by the clock given. Not idempotent: it may still be at work. */
export function lapsed(
  task: { idempotent: boolean; cancelRequested: boolean; expiresAt: Date; timeoutSeconds: number },
  now: Date,
): "requeue" | "give_up" | "expire" | undefined {
  if (task.cancelRequested) return "give_up";
  if (task.idempotent) return now < task.expiresAt ? "requeue" : "expire";
  const lastWord = task.expiresAt.getTime() + (task.timeoutSeconds + RESULT_GRACE_SECONDS) * 1000;
  return now.getTime() < lastWord ? undefined : "expire";
}

/** For a result on its way when its task's time was over. */
export const RESULT_GRACE_SECONDS = 60;
