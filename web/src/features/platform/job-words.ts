// Background jobs as text.

import type { BackgroundJob } from "@holdfast/contracts/endpoints/platform";
import { jobStateTitles } from "@holdfast/contracts/words/state-titles";
import { marksOf } from "../../design/values/marks.ts";

export const jobMarks = marksOf<BackgroundJob["state"]>(jobStateTitles, {
  ok: "ok",
  waiting: "unknown",
  failing: "failed",
});

/** `remove-old-tasks` → "Remove old tasks". */
export function titleOf({ name }: Pick<BackgroundJob, "name">): string {
  const words = name.replaceAll("-", " ").replace(/\bapi\b/g, "API");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export const placeWords: Record<BackgroundJob["runs_in"], string> = {
  "one worker": "One of the workers",
  "each worker": "Every worker",
  "each api": "Every API process",
};

/** `{ sessions: 2, one_time_links: 0 }` → "2 sessions". */
export function resultWords(result: BackgroundJob["last_result"]): string {
  if (result === null) return "–";
  if (Object.keys(result).length === 0) return "Done";
  const counts = Object.entries(result).filter(([, count]) => count > 0);
  return counts.length === 0
    ? "Nothing to do"
    : counts.map(([what, count]) => `${count} ${what.replaceAll("_", " ")}`).join(", ");
}

/** Those that need attention first. */
export function failingFirst(jobs: readonly BackgroundJob[]): BackgroundJob[] {
  return jobs.toSorted((a, b) => Number(b.state === "failing") - Number(a.state === "failing"));
}
