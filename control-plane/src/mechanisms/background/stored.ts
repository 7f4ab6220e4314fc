// Reports of background jobs in the database, and what they mean for the installation as a whole: several processes may
// run the same job, and the last turn of any of them counts.

import type { BackgroundJob } from "@holdfast/contracts/endpoints/platform";
import type { Fragment, Queryable } from "../../database/connect.ts";
import type { Job } from "./job.ts";
import type { JobReport, JobReports } from "./report.ts";

export type DeclaredJob = Pick<Job<never>, "name" | "runsIn">;

/** Splits the reports of one process by where they are stored. */
export function splitReports(reports: JobReports): { own: JobReports; shared: JobReports } {
  const isShared = ([, report]: [string, JobReport]) => report.runs_in === "one worker";
  const entries = Object.entries(reports);
  return {
    own: Object.fromEntries(entries.filter((entry) => !isShared(entry))),
    // A worker that never had a turn of the job knows nothing about it.
    shared: Object.fromEntries(entries.filter((entry) => isShared(entry) && entry[1].turns > 0)),
  };
}

/** An UPDATE for a WITH clause: stores the reports of shared jobs whose last turn was this process's, if `when` holds. */
export function storeShared(
  sql: Queryable,
  { processId, shared, when }: { processId: string; shared: JobReports; when: Fragment },
): Fragment {
  return sql`
    UPDATE background_jobs b SET report = reports.value
    FROM jsonb_each(${JSON.stringify(shared)}::text::jsonb) AS reports
    WHERE b.name = reports.key AND b.taken_by = ${processId} AND b.report IS DISTINCT FROM reports.value AND ${when}`;
}

type SharedRow = { name: string; taken_at: Date; turns: number; report: JobReport | null };
type ProcessRow = { jobs: JobReports };

/** The state of the declared jobs, in their order. Processes without a heartbeat for `silentAfter` are ignored. */
export async function selectJobs(
  db: Queryable,
  declared: readonly DeclaredJob[],
  { silentAfter }: { silentAfter: string },
): Promise<BackgroundJob[]> {
  const shared = await db<SharedRow[]>`SELECT name, taken_at, turns::float8 AS turns, report FROM background_jobs`;
  const processes = await db<ProcessRow[]>`
    SELECT jobs FROM processes WHERE last_seen_at > now() - ${silentAfter}::interval`;
  return describeJobs(declared, { shared, processes });
}

/** Pure: from stored rows to the API's form. */
export function describeJobs(
  declared: readonly DeclaredJob[],
  stored: { shared: readonly SharedRow[]; processes: readonly ProcessRow[] },
): BackgroundJob[] {
  return declared.map(({ name, runsIn }) => {
    if (runsIn === "one worker") {
      const row = stored.shared.find((one) => one.name === name);
      return describeJob({ name, runsIn }, row?.report ? [row.report] : [], row);
    }
    return describeJob(
      { name, runsIn },
      stored.processes.flatMap(({ jobs }) => jobs[name] ?? []),
    );
  });
}

function describeJob(
  { name, runsIn }: DeclaredJob,
  reports: readonly JobReport[],
  row?: Pick<SharedRow, "taken_at" | "turns">,
): BackgroundJob {
  const last = latest(reports, (report) => report.started_at);
  const failed = latest(reports, (report) => report.failed_at);
  const sum = (of: (report: JobReport) => number) => reports.reduce((total, report) => total + of(report), 0);
  const startedAt = row?.taken_at.toISOString() ?? last?.started_at ?? null;
  return {
    name,
    runs_in: runsIn,
    every_seconds: last?.every_seconds ?? reports[0]?.every_seconds ?? null,
    state: reports.some((report) => report.failing) ? "failing" : startedAt === null ? "waiting" : "ok",
    last_started_at: startedAt,
    last_duration_ms: last?.duration_ms ?? null,
    last_result: last?.result ?? null,
    turns: row?.turns ?? sum((report) => report.turns),
    overruns: sum((report) => report.overruns),
    failures: sum((report) => report.failures),
    last_failed_at: failed?.failed_at ?? null,
    last_failure: failed?.failure ?? null,
  };
}

function latest(
  reports: readonly JobReport[],
  timeOf: (report: JobReport) => string | null,
): JobReport | undefined {
  const dated = reports.filter((report) => timeOf(report) !== null);
  return dated.toSorted((a, b) => ((timeOf(a) ?? "") < (timeOf(b) ?? "") ? -1 : 1)).at(-1);
}
