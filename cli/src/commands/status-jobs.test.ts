import type { BackgroundJob } from "@holdfast/contracts/endpoints/platform";
import { describe, expect, it } from "vitest";
import { describeJobs, summarizeJobs } from "./status-jobs.ts";

const now = Date.parse("2026-03-01T03:10:00.000Z");
const job = (over: Partial<BackgroundJob>): BackgroundJob => ({
  name: "remove-expired",
  runs_in: "one worker",
  every_seconds: 60,
  state: "ok",
  last_started_at: "2026-03-01T03:09:30.000Z",
  last_duration_ms: 12,
  last_result: { sessions: 2, one_time_links: 0 },
  turns: 4,
  overruns: 0,
  failures: 0,
  last_failed_at: null,
  last_failure: null,
  ...over,
});
const failing = job({
  ...{ name: "sweep-tasks", state: "failing", failures: 3 },
  ...{ last_failed_at: "2026-03-01T03:08:00.000Z", last_failure: "canceling statement due to timeout" },
});

describe("background jobs in holdfast status", () => {
  it("OPS-02 are listed with schedule, last start, duration and result when asked for", () => {
    expect(describeJobs([job({})], { all: true, now })).toMatch(
      /remove-expired\s+● healthy\s+one worker\s+1 min\s+30(\.0)? s ago\s+12 ms\s+0\s+2 sessions$/,
    );
    const waiting = job({ state: "waiting", every_seconds: null, last_started_at: null, last_duration_ms: null });
    expect(describeJobs([{ ...waiting, last_result: null }], { all: true, now })).toMatch(/○ waiting .* never/);
  });

  it("OPS-02 are listed without being asked for when they fail, with the failure", () => {
    expect(describeJobs([job({})], { all: false, now })).toBe("");
    const text = describeJobs([job({}), failing, job({ name: "slow", overruns: 2 })], { all: false, now });
    expect(text).not.toContain("remove-expired");
    expect(text).not.toContain("slow");
    expect(text).toMatch(/sweep-tasks failed 3 times, last 2(\.0)? min ago: canceling statement due to timeout\./);
  });

  it("OPS-02 become a warning when one fails", () => {
    expect(summarizeJobs([job({})]).warning).toBeUndefined();
    expect(summarizeJobs([job({}), failing]).warning).toBe("1 of 2 jobs failing: sweep-tasks");
  });
});
