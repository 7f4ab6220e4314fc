import { describe, expect, it } from "vitest";
import type { JobReport } from "./report.ts";
import { newReport } from "./report.ts";
import { describeJobs, splitReports } from "./stored.ts";

const report = (over: Partial<JobReport> = {}): JobReport => ({ ...newReport("each api", 5), ...over });
const early = "2026-03-01T03:00:00.000Z";
const late = "2026-03-01T03:00:05.000Z";

describe("reports of background jobs", () => {
  it("are stored with the process, those of one worker with the job", () => {
    const sweep = { ...newReport("one worker", 60), turns: 1 };
    const untaken = newReport("one worker", 60);
    expect(splitReports({ look: report(), sweep, untaken })).toEqual({
      own: { look: report() },
      shared: { sweep },
    });
  });

  it("of several processes become one line: the last turn, all counts, and failing if any fails", () => {
    const processes = [
      { jobs: { look: report({ started_at: late, duration_ms: 3, turns: 2, overruns: 1, result: { seen: 1 } }) } },
      {
        jobs: {
          look: report({
            ...{ started_at: early, duration_ms: 9, turns: 5, overruns: 2, failures: 1 },
            ...{ failing: true, failed_at: early, failure: "no database" },
          }),
        },
      },
      { jobs: {} as Record<string, JobReport> },
    ];
    expect(describeJobs([{ name: "look", runsIn: "each api" }], { shared: [], processes })).toEqual([
      {
        ...{ name: "look", runs_in: "each api", every_seconds: 5, state: "failing" },
        ...{ last_started_at: late, last_duration_ms: 3, last_result: { seen: 1 } },
        ...{ turns: 7, overruns: 3, failures: 1, last_failed_at: early, last_failure: "no database" },
      },
    ]);
  });

  it("show a declared job that has not run as waiting, and no job that is not declared", () => {
    const shared = [{ name: "old", taken_at: new Date(early), turns: 3, report: null }];
    const declared = [{ name: "new", runsIn: "one worker" }] as const;
    expect(describeJobs(declared, { shared, processes: [{ jobs: { gone: report() } }] })).toEqual([
      expect.objectContaining({
        name: "new",
        state: "waiting",
        last_started_at: null,
        every_seconds: null,
        turns: 0,
      }),
    ]);
  });

  it("show a turn of a worker that crashed before it could store a report", () => {
    const shared = [{ name: "sweep", taken_at: new Date(late), turns: 3, report: null }];
    const declared = [{ name: "sweep", runsIn: "one worker" }] as const;
    expect(describeJobs(declared, { shared, processes: [] })).toEqual([
      expect.objectContaining({ state: "ok", last_started_at: late, last_duration_ms: null, turns: 3 }),
    ]);
  });
});
