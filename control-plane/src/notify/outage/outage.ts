// Whether the database counts as unreachable, from one look at it to the next. Pure. One message per outage: a database that
// comes and goes within seconds causes none.

import { hash } from "node:crypto";

/** Times in milliseconds. `down`: it was said. */
export type Outage = { state: "up" } | { state: "failing" | "down"; since: number };
export type OutageEvent = "database.unreachable" | "database.recovered";

/** Longer than a restart or a failover usually takes to be noticed, and well within the minute of a P0. */
export const DOWN_AFTER_MS = 10_000;

export function nextOutage(
  outage: Outage,
  { reachable, now }: { reachable: boolean; now: number },
): { outage: Outage; event?: OutageEvent } {
  if (reachable) {
    return { outage: { state: "up" }, ...(outage.state === "down" ? { event: "database.recovered" } : {}) };
  }
  if (outage.state === "up") return { outage: { state: "failing", since: now } };
  if (outage.state === "failing" && now - outage.since >= DOWN_AFTER_MS) {
    return { outage: { state: "down", since: outage.since }, event: "database.unreachable" };
  }
  return { outage };
}

/** Replicas notice an outage at slightly different times: those within one such interval send the same id. */
const ROUNDED_TO_MS = 300_000;

/** The id of a message about an outage to one receiver: a UUID of version 7, the same in every replica. */
export function outageMessageId(event: OutageEvent, since: number, receiver: string): string {
  const rounded = since - (since % ROUNDED_TO_MS);
  // What is over comes after what began, also in lists.
  const time = (rounded + (event === "database.recovered" ? 1 : 0)).toString(16).padStart(12, "0");
  const digest = hash("sha256", `${event} ${rounded} ${receiver}`, "hex");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${digest.slice(0, 3)}-8${digest.slice(3, 6)}-${digest.slice(6, 18)}`;
}
