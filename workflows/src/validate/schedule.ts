// Cron schedules, in a time zone.

import { Cron } from "croner";

export type Schedule = { schedule: string; timezone?: string };

type ScheduleProblem = { code: "schedule" | "timezone"; message: string };

export function scheduleProblem({ schedule, timezone = "UTC" }: Schedule): ScheduleProblem | undefined {
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
  } catch {
    return { code: "timezone", message: `${JSON.stringify(timezone)} is not an IANA time zone.` };
  }
  try {
    const next = cron({ schedule, timezone }).nextRun();
    return next ? undefined : { code: "schedule", message: "This schedule has no time in the future." };
  } catch (error) {
    const message = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : String(error);
    return { code: "schedule", message: `Not a cron schedule: ${message}.` };
  }
}

/** The next times after one, at most `count`. */
export function nextTimes(schedule: Schedule, after: Date, count: number): Date[] {
  return cron(schedule).nextRuns(count, after);
}

/** The latest time that is not after this one. */
export function latestTime(schedule: Schedule, now: Date): Date | undefined {
  // Times are whole seconds, and the library excludes the one that it is given.
  return cron(schedule).previousRuns(1, new Date(now.getTime() + 1_000))[0];
}

const cron = ({ schedule, timezone = "UTC" }: Schedule) => new Cron(schedule, { timezone, paused: true });
