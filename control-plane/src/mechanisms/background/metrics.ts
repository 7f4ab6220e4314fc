// Background jobs for alarms. Read from what all processes have stored: the worker has no listener of its own.

import type { BackgroundJob } from "@holdfast/contracts/endpoints/platform";
import type { Metrics } from "@holdfast/service/metrics";
import type { Sql } from "../../database/connect.ts";
import { type DeclaredJob, selectJobs } from "./stored.ts";

export function measureJobs(
  metrics: Metrics,
  system: Sql,
  { declared, silentAfter }: { declared: readonly DeclaredJob[]; silentAfter: string },
): void {
  metrics.gaugesBy("job", () => selectJobs(system, declared, { silentAfter }).then(byName), {
    holdfast_background_job_failing: { help: "1 while the last turn of a background job has failed", of: failing },
    holdfast_background_job_last_start_timestamp_seconds: {
      help: "When the last turn of a background job started",
      of: ({ last_started_at }) => (last_started_at === null ? undefined : Date.parse(last_started_at) / 1000),
    },
    holdfast_background_job_last_duration_seconds: {
      help: "How long the last turn of a background job took",
      of: ({ last_duration_ms }) => (last_duration_ms === null ? undefined : last_duration_ms / 1000),
    },
    holdfast_background_job_turns: {
      help: "Turns of a background job, by the processes that run now",
      of: ({ turns }) => turns,
    },
    holdfast_background_job_overruns: {
      help: "Turns left out because the one before still ran, by the processes that run now",
      of: ({ overruns }) => overruns,
    },
    holdfast_background_job_failures: {
      help: "Turns that failed, by the processes that run now",
      of: ({ failures }) => failures,
    },
  });
}

const failing = ({ state }: BackgroundJob) => (state === "failing" ? 1 : 0);

function byName(jobs: readonly BackgroundJob[]): Map<string, BackgroundJob> {
  return new Map(jobs.map((job) => [job.name, job]));
}
