// A task's status as shape and word, and what can be read from its times.

import { type Task, type TaskStatus, terminalStatuses } from "@holdfast/contracts/endpoints/tasks";
import type { State } from "../../design/StatusMark.tsx";

const marks: Record<TaskStatus, { state: State; word: string }> = {
  queued: { state: "unknown", word: "Queued" },
  dispatched: { state: "moving", word: "Running" },
  completed: { state: "ok", word: "Completed" },
  failed: { state: "failed", word: "Failed" },
  expired: { state: "degraded", word: "Expired" },
  cancelled: { state: "ended", word: "Cancelled" },
};

export function taskMark(task: Pick<Task, "status" | "cancel_requested_at">): { state: State; word: string } {
  if (task.status === "dispatched" && task.cancel_requested_at) return { state: "moving", word: "Cancelling" };
  return marks[task.status];
}

export function hasEnded(task: Pick<Task, "status">): boolean {
  return terminalStatuses.has(task.status);
}

/** 0 to 100, where a type tells one. */
export function percentOf(progress: unknown): number | undefined {
  if (typeof progress !== "object" || progress === null || !("percent" in progress)) return undefined;
  const { percent } = progress;
  return typeof percent === "number" ? Math.min(100, Math.max(0, percent)) : undefined;
}

/** How long it ran, or runs so far. */
export function ranMs(task: Pick<Task, "dispatched_at" | "finished_at">, now: number): number | undefined {
  if (!task.dispatched_at) return undefined;
  const until = task.finished_at ? Date.parse(task.finished_at) : now;
  return Math.max(0, until - Date.parse(task.dispatched_at));
}
