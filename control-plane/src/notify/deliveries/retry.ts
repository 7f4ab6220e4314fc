// When a message that was not accepted is sent again, and when no more. Pure.

/** Three times as long each time, up to an hour: a receiver that restarts gets it soon, one that is gone is not bothered. */
const FIRST_PAUSE_SECONDS = 5;
const LONGEST_PAUSE_SECONDS = 3_600;
/** About a day. */
export const MOST_ATTEMPTS = 30;

/** Seconds until the next attempt; undefined: there is none. */
export function pauseAfter(attempts: number, { once }: { once: boolean }): number | undefined {
  if (once || attempts >= MOST_ATTEMPTS) return undefined;
  return Math.min(FIRST_PAUSE_SECONDS * 3 ** Math.max(0, attempts - 1), LONGEST_PAUSE_SECONDS);
}
