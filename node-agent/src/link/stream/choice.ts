// Whether an agent uses a stream or polls, and how often it pings: functions of plain state. A proxy may not pass on
// streams, or cut those that are silent; the agent then polls, and returns to a stream by itself. Times in milliseconds.

import { type LinkTimes, usualTimes } from "../times.ts";

export type Choice = {
  /** No stream is tried before this time. */
  pollUntil: number;
  /** Consecutive streams that could not be opened although the server can be reached. */
  refusals: number;
  /** Consecutive streams that were cut soon, while the server could be reached again at once. */
  cuts: number;
  /** Undefined: the connection is kept alive by TCP alone, which wakes no process. */
  pingMs: number | undefined;
};

export const atFirst: Choice = { pollUntil: 0, refusals: 0, cuts: 0, pingMs: undefined };

const FIRST_POLL_MS = 30_000;
const LONGEST_POLL_MS = 600_000;
const CUT_SOON_MS = 60_000;
const MOST_CUTS = 4;

export function mayStream(choice: Choice, now: number): boolean {
  return now >= choice.pollUntil;
}

/** The server can be reached, but not by a stream. */
export function afterRefusal(choice: Choice, now: number): Choice {
  const pause = Math.min(LONGEST_POLL_MS, FIRST_POLL_MS * 2 ** Math.min(choice.refusals, 10));
  return { ...choice, refusals: choice.refusals + 1, pollUntil: now + pause };
}

/** Neither a stream nor anything else reaches the server: what is known about streams stays as it is. */
export function afterOutage(choice: Choice, now: number): Choice {
  return { ...choice, pollUntil: now + FIRST_POLL_MS };
}

/** A stream broke, and another one could be opened at once: something in between has cut it. */
export function afterCut(
  choice: Choice,
  cut: { livedMs: number; silentMs: number },
  now: number,
  { silentMs, shortestPingMs }: LinkTimes = usualTimes,
): Choice {
  const cuts = cut.livedMs < CUT_SOON_MS ? choice.cuts + 1 : 1;
  if (cuts >= MOST_CUTS) return { ...afterRefusal(choice, now), cuts: 0 };
  if (cut.silentMs < silentMs) return { ...choice, cuts };
  const pingMs = Math.max(shortestPingMs, Math.min(choice.pingMs ?? Number.POSITIVE_INFINITY, cut.silentMs / 2));
  return { ...choice, cuts, pingMs };
}

/** A stream has been open for long enough to be relied upon. */
export function afterSuccess(choice: Choice): Choice {
  return { ...choice, refusals: 0, cuts: 0 };
}
