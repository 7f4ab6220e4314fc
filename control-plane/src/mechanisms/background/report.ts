// What a process knows about each of its jobs: schedule, overruns, the last turn and the last failure. Kept in memory
// and stored with the heartbeat of the process, so that a turn costs no statement for it.

import { redact } from "@holdfast/kit/redact";
import type { JobResult, RunsIn } from "./job.ts";

export type JobReport = {
  runs_in: RunsIn;
  every_seconds: number;
  /** These three are counted since the process started. */
  turns: number;
  overruns: number;
  failures: number;
  started_at: string | null;
  duration_ms: number | null;
  /** The result of the last turn that succeeded. */
  result: JobResult | null;
  /** The last finished turn failed. */
  failing: boolean;
  failed_at: string | null;
  failure: string | null;
};

export type JobReports = Readonly<Record<string, JobReport>>;

const LONGEST_FAILURE = 300;

export function newReport(runsIn: RunsIn, everySeconds: number): JobReport {
  return {
    runs_in: runsIn,
    every_seconds: everySeconds,
    turns: 0,
    overruns: 0,
    failures: 0,
    started_at: null,
    duration_ms: null,
    result: null,
    failing: false,
    failed_at: null,
    failure: null,
  };
}

export function failureText(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return redact(text).slice(0, LONGEST_FAILURE);
}
