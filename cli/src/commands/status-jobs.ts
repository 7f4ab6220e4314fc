// Background jobs as `holdfast status` shows them.

import type { BackgroundJob } from "@holdfast/contracts/endpoints/platform";
import { jobStateTitles } from "@holdfast/contracts/words/state-titles";
import { ago, span, table } from "../output.ts";

/** `warning` where a job fails. */
export function summarizeJobs(jobs: BackgroundJob[]): { jobs: BackgroundJob[]; warning?: string } {
  const failing = jobs.filter(({ state }) => state === "failing");
  if (failing.length === 0) return { jobs };
  const names = failing.map(({ name }) => name).join(", ");
  return { jobs, warning: `${failing.length} of ${jobs.length} jobs failing: ${names}` };
}

const shapes: Record<BackgroundJob["state"], string> = { ok: "●", waiting: "○", failing: "▲" };

/** Without `all`, only those that fail; empty where there are none. */
export function describeJobs(
  jobs: readonly BackgroundJob[],
  { all, now = Date.now() }: { all: boolean; now?: number },
): string {
  const shown = all ? jobs : jobs.filter(({ state }) => state === "failing");
  if (shown.length === 0) return "";
  const listed = table(shown, [
    { title: "background job", of: ({ name }) => name },
    { title: "state", of: ({ state }) => `${shapes[state]} ${jobStateTitles[state].title.toLowerCase()}` },
    { title: "runs in", of: ({ runs_in }) => runs_in },
    { title: "every", of: ({ every_seconds }) => (every_seconds === null ? null : span(every_seconds * 1000)) },
    { title: "last start", of: ({ last_started_at }) => ago(last_started_at, now) },
    { title: "took", of: ({ last_duration_ms }) => (last_duration_ms === null ? null : span(last_duration_ms)) },
    { title: "overruns", of: ({ overruns }) => String(overruns) },
    { title: "last result", of: ({ last_result }) => resultText(last_result) },
  ]);
  const failures = shown.filter(({ state }) => state === "failing").map((job) => failureText(job, now));
  return [listed, ...failures].join("\n");
}

function resultText(result: BackgroundJob["last_result"]): string | null {
  const counts = Object.entries(result ?? {}).filter(([, count]) => count > 0);
  return counts.length === 0
    ? null
    : counts.map(([what, count]) => `${count} ${what.replaceAll("_", " ")}`).join(", ");
}

function failureText({ name, last_failed_at, last_failure, failures }: BackgroundJob, now: number): string {
  const times = failures === 1 ? "once" : `${failures} times`;
  return `${name} failed ${times}, last ${ago(last_failed_at, now)}: ${last_failure ?? "no message"}. It runs again at its next turn.`;
}
