// A moment: how long ago in words, with the exact time on hover and for machines. Exact times are set
// in mono, so that a column of them compares by eye.

import { useSyncExternalStore } from "react";
import { classes } from "./classes.ts";
import { exactTime, timeAgo } from "./time.ts";

export function When({ at, exact }: { at: string; exact?: boolean }) {
  const now = useNow();
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

const tickMs = 15_000;
let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void) {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, tickMs);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** One clock for the page, so that all relative times move together. */
function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}
