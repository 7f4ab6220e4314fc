// A moment: how long ago in words, with the exact time on hover and for machines. Exact times are set
// in mono, so that a column of them compares by eye.

import { classes } from "../controls/classes.ts";
import { duration, exactTime, secondsAgo, timeAgo } from "./time.ts";
import { useNow } from "./use-now.ts";

export function When({ at, exact }: { at: string; exact?: boolean }) {
  const now = useNow("quarter minutes");
  return (
    <time
      dateTime={at}
      title={exact ? timeAgo(at, now) : exactTime(at)}
      className={classes("whitespace-nowrap", exact && "font-mono text-sm")}
    >
      {exact ? exactTime(at) : timeAgo(at, now)}
    </time>
  );
}

/** For what changes every few seconds: its age counts up on the page. */
export function SecondsAgo({ at }: { at: string }) {
  const now = useNow("seconds");
  return (
    <time dateTime={at} title={exactTime(at)} className="whitespace-nowrap tabular-nums">
      {secondsAgo(at, now)}
    </time>
  );
}

/** Counts down to a time; empty after it. */
export function TimeLeft({ until }: { until: string }) {
  const left = Math.max(0, Math.floor((Date.parse(until) - useNow("seconds")) / 1_000));
  return (
    <time dateTime={until} title={exactTime(until)} aria-live="off" className="whitespace-nowrap tabular-nums">
      {duration(left)}
    </time>
  );
}
