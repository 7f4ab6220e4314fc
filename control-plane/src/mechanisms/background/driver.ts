// Runs the background jobs of one process, each at its interval and early when a signal wakes it. One turn of a job at a
// time: a turn that is due while the last one still runs is counted as an overrun and left out, a wake starts a turn as
// soon as the running one has ended. A failed turn is not retried before the next one is due.

import type { Log } from "@holdfast/service/log";
import type { Signals } from "../signals.ts";
import { type Clock, systemClock } from "./clock.ts";
import type { Job } from "./job.ts";
import { failureText, type JobReport, type JobReports, newReport } from "./report.ts";
import type { Turns } from "./turns.ts";

export type Background = {
  /** Starts a turn now, or right after the running one. For events that have no signal. */
  wake(name: string): void;
  reports(): JobReports;
  /** Starts no further turn and waits for those that run. */
  stop(): Promise<void>;
};

export type BackgroundOptions<Context> = {
  jobs: readonly Job<Context>[];
  context: Context;
  signals: Pick<Signals, "subscribe">;
  /** Needed by jobs of `one worker`. */
  turns?: Pick<Turns, "take">;
  log: Log;
  clock?: Clock;
};

export function startBackground<Context>(options: BackgroundOptions<Context>): Background {
  const running = new Map<string, RunningJob>();
  for (const job of options.jobs) {
    if (running.has(job.name)) throw new Error(`two background jobs are named ${job.name}`);
    const everySeconds = typeof job.every === "function" ? job.every(options.context) : job.every;
    if (everySeconds > 0) running.set(job.name, runJob(job, everySeconds, options));
  }
  return {
    wake: (name) => running.get(name)?.wake(),
    reports: () => Object.fromEntries([...running].map(([name, { report }]) => [name, { ...report }])),
    async stop() {
      await Promise.all([...running.values()].map((job) => job.stop()));
    },
  };
}

/** An interval that is a value of the policy may change. */
const ADJUST_MS = 1_000;

type RunningJob = { report: JobReport; wake(): void; stop(): Promise<void> };

function runJob<Context>(
  job: Job<Context>,
  firstInterval: number,
  { context, signals, turns, log, clock = systemClock }: BackgroundOptions<Context>,
): RunningJob {
  const report = newReport(job.runsIn, firstInterval);
  let everySeconds = firstInterval;
  let stopped = false;
  let woken = false;
  let turn: Promise<void> | undefined;

  const mayRun = async (early: boolean): Promise<boolean> => {
    if (job.runsIn !== "one worker") return true;
    if (!turns) throw new Error(`${job.name} runs in one worker, and this process takes no turns`);
    return turns.take(job.name, everySeconds, { early });
  };

  const runOnce = async (early: boolean) => {
    try {
      if (!(await mayRun(early))) return;
    } catch (error) {
      log.warn(
        { err: error, job: job.name },
        "background job could not take its turn; it tries again at the next one",
      );
      return;
    }
    const startedAt = clock.now();
    report.turns += 1;
    report.started_at = new Date(startedAt).toISOString();
    try {
      const result = (await job.run(context)) ?? {};
      report.result = result;
      if (report.failing) log.info({ job: job.name }, "background job succeeds again");
      report.failing = false;
      if (Object.values(result).some((count) => count > 0)) {
        log.info({ job: job.name, result }, "background job did work");
      }
    } catch (error) {
      // Every failure counts, the first of a series is logged as a warning: some jobs have a turn every second.
      const level = report.failing ? "debug" : "warn";
      log[level]({ err: error, job: job.name }, "background job failed; it runs again at its next turn");
      report.failures += 1;
      report.failing = true;
      report.failed_at = new Date(clock.now()).toISOString();
      report.failure = failureText(error);
    }
    report.duration_ms = clock.now() - startedAt;
  };

  const start = (early: boolean) => {
    turn = runOnce(early).then(() => {
      turn = undefined;
      if (!woken || stopped) return;
      woken = false;
      start(true);
    });
  };

  const onDue = () => {
    if (turn) report.overruns += 1;
    else start(false);
  };
  const wake = () => {
    if (stopped) return;
    if (turn) woken = true;
    else start(true);
  };

  let endRepeating = clock.repeat(everySeconds * 1000, onDue);
  const { every } = job;
  const adjust = (wanted: number) => {
    if (wanted === everySeconds || wanted <= 0) return;
    everySeconds = wanted;
    report.every_seconds = wanted;
    endRepeating();
    endRepeating = clock.repeat(everySeconds * 1000, onDue);
  };
  const ends = [
    () => endRepeating(),
    ...(typeof every === "function" ? [clock.repeat(ADJUST_MS, () => adjust(every(context)))] : []),
    ...(job.wakeOn ?? []).map((topic) => signals.subscribe(topic, wake)),
  ];
  if (job.atStart) start(false);
  return {
    report,
    wake,
    async stop() {
      stopped = true;
      for (const end of ends) end();
      await turn;
    },
  };
}
