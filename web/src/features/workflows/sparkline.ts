// The newest runs of a workflow as bars: how high each is, and all of them in words.

import type { RecentRun } from "@holdfast/contracts/endpoints/recent-runs";
import type { RunState } from "@holdfast/contracts/endpoints/runs";

export type Bar = { id: string; status: RunState; height: number };

export const HIGHEST = 24;
const LOWEST = 6;

/** Oldest first, as one reads; a run that took longer than others is higher, on a scale on which seconds and hours both show. */
export function barsOf(newestFirst: readonly RecentRun[], now: number): Bar[] {
  const oldestFirst = newestFirst.toReversed();
  const weights = oldestFirst.map((run) => Math.log10(1 + ranMs(run, now)));
  const most = Math.max(...weights, 1);
  return oldestFirst.map(({ id, status }, index) => ({
    ...{ id, status },
    height: LOWEST + Math.round(((weights[index] ?? 0) / most) * (HIGHEST - LOWEST)),
  }));
}

const ranMs = ({ started_at, finished_at }: RecentRun, now: number) =>
  started_at ? Math.max(0, (finished_at ? Date.parse(finished_at) : now) - Date.parse(started_at)) : 0;

/** "Last 5 runs: 4 succeeded, 1 failed. Newest: failed." */
export function inWords(newestFirst: readonly RecentRun[], word: (status: RunState) => string): string {
  const [newest] = newestFirst;
  if (!newest) return "No runs yet";
  const counts = Map.groupBy(newestFirst, ({ status }) => status);
  const parts = [...counts].map(([status, runs]) => `${runs.length} ${word(status).toLowerCase()}`);
  const many = newestFirst.length === 1 ? "Last run" : `Last ${newestFirst.length} runs`;
  if (newestFirst.length === 1) return `${many}: ${word(newest.status).toLowerCase()}`;
  return `${many}: ${parts.join(", ")}. Newest: ${word(newest.status).toLowerCase()}`;
}
