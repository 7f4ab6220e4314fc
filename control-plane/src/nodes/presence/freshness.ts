// Whether a node is connected. It is offline when its connection has ended and it did not come back; it is late when
// heartbeats are missing and nothing is known about the connection. All times are the database's: it is the one clock that
// all replicas share. A heartbeat from the future was received while that clock was wrong, and shows nothing.

import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";

export type Freshness = "never" | "online" | "stale" | "offline" | "in_future";

export type Heard = {
  /** Since the last heartbeat; undefined before the first. */
  ageMs: number | undefined;
  /** Since its connection has ended; undefined: it has not, as far as is known. */
  disconnectedMs?: number | undefined;
};

/** An agent whose connection breaks opens another one at once; longer than this, something is wrong. */
export const RECONNECT_WITHIN_SECONDS = 10;

export function freshnessOf({ ageMs, disconnectedMs }: Heard, staleAfterSeconds: number): Freshness {
  if (ageMs === undefined) return "never";
  if (ageMs < -CLOCK_TOLERANCE_SECONDS * 1000) return "in_future";
  const isStale = ageMs > staleAfterSeconds * 1000;
  if (disconnectedMs === undefined) return isStale ? "stale" : "online";
  return isStale || disconnectedMs > RECONNECT_WITHIN_SECONDS * 1000 ? "offline" : "online";
}
