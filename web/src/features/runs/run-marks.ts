// States of runs and of their nodes as shape and title, and how long they took.

import type { Run, RunNodeState, RunState } from "@holdfast/contracts/endpoints/runs";
import { runNodeStateTitles, runStateTitles } from "@holdfast/contracts/words/run-titles";
import { cancellingTitle } from "@holdfast/contracts/words/state-titles";
import { type Mark, markOf, marksOf } from "../../design/values/marks.ts";

export const runMarks = marksOf<RunState>(runStateTitles, {
  queued: "unknown",
  running: "moving",
  succeeded: "ok",
  failed: "failed",
  cancelled: "ended",
});

export const nodeMarks = marksOf<RunNodeState>(runNodeStateTitles, {
  pending: "unknown",
  started: "moving",
  dispatched: "moving",
  waiting: "degraded",
  retrying: "degraded",
  succeeded: "ok",
  failed: "failed",
  skipped: "ended",
});

export function runMark(run: Pick<Run, "status" | "cancel_requested">): Mark {
  if (!hasEnded(run) && run.cancel_requested) return markOf(cancellingTitle, "moving");
  return runMarks[run.status];
}

export function hasEnded({ status }: Pick<Run, "status">): boolean {
  return status === "succeeded" || status === "failed" || status === "cancelled";
}

/** How long it ran, or has been running. */
export function ranMs(
  { started_at, finished_at }: Pick<Run, "started_at" | "finished_at">,
  now: number,
): number | undefined {
  if (!started_at) return undefined;
  return Math.max(0, (finished_at ? Date.parse(finished_at) : now) - Date.parse(started_at));
}
