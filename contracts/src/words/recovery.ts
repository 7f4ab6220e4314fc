// When page and command line show the recovery checklist: while something is wrong, and for an hour after it was.

import type { Explanation } from "../endpoints/drift.ts";

const AFTER_MS = 3_600_000;

export function needsRecovery({
  healthy,
  history: [latest],
  at,
}: Pick<Explanation, "healthy" | "history" | "at">) {
  if (!healthy) return true;
  const closedAt = latest?.closed_at;
  return closedAt ? Date.parse(at) - Date.parse(closedAt) < AFTER_MS : false;
}
