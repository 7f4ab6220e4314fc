// Whether the last heartbeat shows that a node is online. Both times are the database's: it is the one clock that all
// replicas share. A heartbeat from the future was received while that clock was wrong, and shows nothing.

import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";

export type Freshness = "never" | "online" | "stale" | "in_future";

/** `ageMs`: since the last heartbeat; undefined before the first. */
export function freshnessOf(ageMs: number | undefined, staleAfterSeconds: number): Freshness {
  if (ageMs === undefined) return "never";
  if (ageMs < -CLOCK_TOLERANCE_SECONDS * 1000) return "in_future";
  return ageMs > staleAfterSeconds * 1000 ? "stale" : "online";
}
