// Which times of a schedule start runs now. A function of the schedule and two times, so that any process comes to the same answer after
// any outage.

import type { Trigger } from "../document/schema.ts";
import { latestTime, nextTimes } from "../validate/schedule.ts";

export type CronTrigger = Extract<Trigger, { type: "cron" }>;

/** Of `missed: all`: what an outage leaves beyond these is not made up for. */
export const MOST_MISSED = 100;
/** Later than this, a time counts as missed. */
const LATE_MS = 60_000;

export type Due = {
  start: Date[];
  /** Null: the schedule has no further time. */
  nextAt: Date | null;
};

/** `nextAt`: the first time that has not been considered yet. */
export function dueTimes(trigger: CronTrigger, { nextAt, now }: { nextAt: Date; now: Date }): Due {
  if (nextAt > now) return { start: [], nextAt };
  const after = nextTimes(trigger, now, 1)[0] ?? null;
  const { missed = "once" } = trigger;
  if (missed === "all") {
    const all = [nextAt, ...nextTimes(trigger, nextAt, MOST_MISSED - 1)];
    return { start: all.filter((time) => time <= now), nextAt: after };
  }
  const latest = latestTime(trigger, now);
  const last = latest && latest > nextAt ? latest : nextAt;
  const isMissed = now.getTime() - last.getTime() > LATE_MS;
  return { start: missed === "skip" && isMissed ? [] : [last], nextAt: after };
}

/** Equal for triggers that are the same one in two versions of a document. */
export function keyOfTrigger(trigger: Exclude<Trigger, { type: "manual" }>): string {
  if (trigger.type === "webhook") return "webhook";
  return JSON.stringify(["cron", trigger.schedule, trigger.timezone ?? "UTC", trigger.input ?? null]);
}
