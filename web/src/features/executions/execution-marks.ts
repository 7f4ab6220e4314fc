// An execution's state as shape and title, and what its times show.

import { type Execution, type ExecutionState, endedStates } from "@holdfast/contracts/endpoints/executions";
import { cancellingTitle, executionStateTitles } from "@holdfast/contracts/words/state-titles";
import { type Mark, markOf, marksOf } from "../../design/values/marks.ts";

const marks = marksOf<ExecutionState>(executionStateTitles, {
  pending: "unknown",
  dispatched: "moving",
  running: "moving",
  succeeded: "ok",
  failed: "failed",
  cancelled: "ended",
  unplaced: "degraded",
});

export function executionMark(execution: Pick<Execution, "status" | "cancel_requested_at">): Mark {
  if (!hasEnded(execution) && execution.cancel_requested_at) return markOf(cancellingTitle, "moving");
  return marks[execution.status];
}

export function hasEnded({ status }: Pick<Execution, "status">): boolean {
  return endedStates.has(status);
}

/** How long it ran, or has been running. */
export function ranMs(
  { dispatched_at, finished_at }: Pick<Execution, "dispatched_at" | "finished_at">,
  now: number,
): number | undefined {
  if (!dispatched_at) return undefined;
  return Math.max(0, (finished_at ? Date.parse(finished_at) : now) - Date.parse(dispatched_at));
}
