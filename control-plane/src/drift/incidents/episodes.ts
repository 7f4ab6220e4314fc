// Links what a host recorded to the incident in whose course it did, also when the records arrive after it is over: a host that
// was cut off delivers them when it is back.

import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { Tx } from "../../database/connect.ts";

/** A host that makes up correlation ids fills only its own incident's list, and only as far. */
const MOST_EPISODES = 20;
/** Records that arrive later are kept as evidence only. */
const ARRIVE_WITHIN = "1 day";

/** The correlation ids of the nodes' stored records, as far as their time is that of an incident. */
export async function linkEpisodes(tx: Tx, nodeIds: readonly string[]): Promise<void> {
  if (nodeIds.length === 0) return;
  await tx`
    WITH found AS (
      SELECT i.id, array_agg(DISTINCT o.correlation_id ORDER BY o.correlation_id) AS ids
      FROM incidents i JOIN node_observations o ON o.node_id = i.node_id AND o.kind IN ('diagnostic', 'finding')
        AND o.correlation_id <> ALL (i.episodes)
        AND o.seen_at >= i.began_at - ${CLOCK_TOLERANCE_SECONDS} * interval '1 second'
        AND (i.closed_at IS NULL OR o.observed_at <= i.closed_at)
      WHERE i.node_id = ANY(${nodeIds as string[]}::uuid[])
        AND (i.closed_at IS NULL OR i.closed_at > now() - ${ARRIVE_WITHIN}::interval)
      GROUP BY i.id)
    UPDATE incidents i SET episodes = (i.episodes || found.ids)[1:${MOST_EPISODES}::int]
    FROM found WHERE i.id = found.id AND cardinality(i.episodes) < ${MOST_EPISODES}`;
}
