// What the audit gets of a failure that is repeated: a row for the first, then summaries at growing intervals, each at least
// the dedupe window after the row before. Pure.

/** Times in milliseconds. */
export type Series = {
  lastSeenAt: number;
  /** When the audit got its last row about it, and how many it has. */
  reportedAt: number;
  reports: number;
};

/** `count`: no row, only the count goes up. */
export type Report = "first" | "summary" | "count";

/** What fails again after so long is news, although nothing has shown that it worked meanwhile. */
export const FORGOTTEN_AFTER_MS = 24 * 3_600_000;
/** Twice as long each time, up to an hour with the default window: a node that is locked out for weeks fills no audit. */
const MOST_WINDOWS = 12;

/** `series` is undefined if nothing is known of such a failure, or it has recovered since. */
export function decideReport(series: Series | undefined, now: number, windowMs: number): Report {
  if (!series || now - series.lastSeenAt >= FORGOTTEN_AFTER_MS) return "first";
  return now - series.reportedAt >= pauseAfter(series.reports, windowMs) ? "summary" : "count";
}

export function pauseAfter(reports: number, windowMs: number): number {
  return windowMs * Math.min(2 ** Math.max(0, reports - 1), MOST_WINDOWS);
}
