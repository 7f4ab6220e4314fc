// Whether an api serves nodes, from what processes write about themselves: nodes that are silent because of our own outage
// are not to blame. A worker looks; if none ran either, the gap shows afterwards.

import type { Sql } from "../../database/connect.ts";
import { type PlatformObservation, recordPlatform } from "../evidence/platform.ts";

/** A rolling restart is no outage, and several writes of a process may be lost. */
export const SILENT_MS = 20_000;

export type Serving = {
  now: Date;
  /** The last time that any api wrote; null: none is known. */
  last_seen_at: Date | null;
  /** Since when one runs without interruption; null: none does. */
  serving_since: Date | null;
};
export type LastKnown = { value: string; seen_at: Date } | undefined;

export function judgeControlPlane(known: LastKnown, serving: Serving): PlatformObservation[] {
  const { now, last_seen_at, serving_since } = serving;
  const readyUntil = known?.value === "ready" ? known.seen_at : undefined;
  if (serving_since && last_seen_at) {
    // A process that was paused or cut off is ready since the outage ended: its start is older than the outage.
    const outageUntil = known?.value === "not_ready" ? known.seen_at : undefined;
    const isReady = ready(latest(serving_since, outageUntil) ?? serving_since, last_seen_at);
    if (!readyUntil || serving_since.getTime() - readyUntil.getTime() <= SILENT_MS) return [isReady];
    return [notReady(readyUntil, serving_since), isReady];
  }
  if (known?.value === "not_ready") return [notReady(known.seen_at, now)];
  const silentSince = latest(readyUntil, last_seen_at);
  if (!silentSince || now.getTime() - silentSince.getTime() <= SILENT_MS) return [];
  return [notReady(silentSince, now)];
}

const ready = (observedAt: Date, seenAt: Date): PlatformObservation => ({
  ...{ kind: "control_plane", value: "ready", observedAt, seenAt: latest(observedAt, seenAt) ?? seenAt },
});

const notReady = (observedAt: Date, seenAt: Date): PlatformObservation => ({
  ...{ kind: "control_plane", value: "not_ready", observedAt, seenAt: latest(observedAt, seenAt) ?? seenAt },
  detail: { text: "No api process was running." },
});

function latest(...times: (Date | null | undefined)[]): Date | undefined {
  return times.reduce<Date | undefined>((a, b) => (b && (!a || b > a) ? b : a), undefined);
}

/** Returns the ids of nodes to classify again: all when this changes, and those that are back after an outage. */
export async function observeControlPlane(system: Sql): Promise<string[]> {
  const silent = `${SILENT_MS} milliseconds`;
  const [serving] = await system<Serving[]>`
    SELECT now() AS now, max(last_seen_at) AS last_seen_at,
      min(started_at) FILTER (WHERE last_seen_at > now() - ${silent}::interval) AS serving_since
    FROM processes WHERE kind = 'api'`;
  const [known] = await system<NonNullable<LastKnown>[]>`
    SELECT value, seen_at FROM platform_observations WHERE kind = 'control_plane' AND replaced_at IS NULL`;
  if (!serving) return [];
  const changed = await recordPlatform(system, judgeControlPlane(known, serving));
  const rows = await system<{ node_id: string }[]>`
    UPDATE node_verdicts v SET review_at = now() FROM node_presence p
    WHERE p.node_id = v.node_id AND v.review_at > now() AND (${changed} OR EXISTS (
      SELECT FROM platform_observations o
      WHERE o.kind = 'control_plane' AND o.replaced_at IS NULL AND o.value = 'ready'
        AND o.observed_at > now() - interval '5 minutes' AND p.heartbeat_at > o.observed_at
        AND v.classified_at < p.heartbeat_at AND v.causes::text LIKE '%"control_plane_unreachable"%'))
    RETURNING v.node_id`;
  return rows.map(({ node_id }) => node_id);
}
