// Links what a host recorded to the incident in whose course it did, also when the records arrive after it is over: a host that
// was cut off delivers them when it is back.

import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { Tx } from "../../database/connect.ts";
import type { Kind, Observation } from "../evidence/observation.ts";

/** A host that makes up correlation ids fills only its own incident's list, and only as far. */
const MOST_EPISODES = 20;
/** Records that arrive later are kept as evidence only. */
const ARRIVE_WITHIN = "1 day";

/** What hosts record under an id of their own. */
const recorded: ReadonlySet<Kind> = new Set(["diagnostic", "finding"]);

/** Of an incident that is opened, by what is known of the node. Times are the host's, whose clock may be off. */
export function episodesOf(evidence: readonly Observation[], beganAt: number): string[] {
  const ids = evidence
    .filter(({ kind, observedAt }) => recorded.has(kind) && observedAt >= beganAt - CLOCK_TOLERANCE_SECONDS * 1000)
    .flatMap(({ correlationId }) => correlationId ?? []);
  return [...new Set(ids)].sort().slice(0, MOST_EPISODES);
}

type Arrived = { nodeId: string; kind: Kind; correlationId?: string | undefined; observedAt: Date };

/** Of what arrives when an incident is open, or was. */
export async function linkEpisodes(tx: Tx, arrived: readonly Arrived[]): Promise<void> {
  const all = arrived.filter(({ kind, correlationId }) => recorded.has(kind) && correlationId !== undefined);
  if (all.length === 0) return;
  const tolerance = `${CLOCK_TOLERANCE_SECONDS} seconds`;
  await tx`
    WITH found AS (
      SELECT i.id, array_agg(DISTINCT e.correlation_id) AS ids
      FROM unnest(${all.map(({ nodeId }) => nodeId)}::uuid[],
        ${all.map(({ correlationId }) => correlationId ?? null)}::text[],
        ${all.map(({ observedAt }) => observedAt)}::timestamptz[]) AS e (node_id, correlation_id, at),
      LATERAL (
        SELECT id, episodes FROM incidents
        WHERE node_id = e.node_id AND began_at <= e.at + ${tolerance}::interval
          AND (closed_at IS NULL OR closed_at >= e.at - ${tolerance}::interval
            AND closed_at > now() - ${ARRIVE_WITHIN}::interval)
        ORDER BY opened_at DESC LIMIT 1) AS i
      WHERE e.correlation_id <> ALL (i.episodes)
      GROUP BY i.id)
    UPDATE incidents i SET episodes = (i.episodes || found.ids)[1:${MOST_EPISODES}::int]
    FROM found WHERE i.id = found.id AND cardinality(i.episodes) < ${MOST_EPISODES}`;
}
