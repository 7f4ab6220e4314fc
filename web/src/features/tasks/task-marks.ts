// A task's status as shape and title, and what its times show.

import { type Task, type TaskStatus, terminalStatuses } from "@holdfast/contracts/endpoints/tasks";
import { cancellingTitle, taskStatusTitles } from "@holdfast/contracts/words/state-titles";
import { type Mark, markOf, marksOf } from "../../design/values/marks.ts";

const marks = marksOf<TaskStatus>(taskStatusTitles, {
  queued: "unknown",
  dispatched: "moving",
  completed: "ok",
  failed: "failed",
  expired: "degraded",
  cancelled: "ended",
});

export function taskMark(task: Pick<Task, "status" | "cancel_requested_at">): Mark {
  if (task.status === "dispatched" && task.cancel_requested_at) return markOf(cancellingTitle, "moving");
  return marks[task.status];
}

export function hasEnded(task: Pick<Task, "status">): boolean {
  return terminalStatuses.has(task.status);
}

/** 0 to 100; undefined if the task type reports none. */
export function percentOf(progress: unknown): number | undefined {
  if (typeof progress !== "object" || progress === null || !("percent" in progress)) return undefined;
  const { percent } = progress;
  return typeof percent === "number" ? Math.min(100, Math.max(0, percent)) : undefined;
}

/** How long it ran, or has been running. */
export function ranMs(task: Pick<Task, "dispatched_at" | "finished_at">, now: number): number | undefined {
  if (!task.dispatched_at) return undefined;
  const until = task.finished_at ? Date.parse(task.finished_at) : now;
  return Math.max(0, until - Date.parse(task.dispatched_at));
}
