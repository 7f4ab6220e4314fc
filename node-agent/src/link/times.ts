// How long the link waits, in milliseconds.

export type LinkTimes = {
  /** For the answer to a call. */
  callMs: number;
  /** A stream that was silent for less was not cut because of its silence. */
  silentMs: number;
  shortestPingMs: number;
};

export const usualTimes: LinkTimes = { callMs: 15_000, silentMs: 4_000, shortestPingMs: 2_000 };
