// Links what a host recorded to the incident in whose course it did, also when the records arrive after it is over: a host that
// was cut off delivers them when it is back.

import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import type { Fragment, Tx } from "../../database/connect.ts";
import type { Kind } from "../evidence/observation.ts";

/** A host that makes up correlation ids fills only its own incident's list, and only as far. */
const MOST_EPISODES = 20;
/** Records that arrive later are kept as evidence only. */
const ARRIVE_WITHIN = "1 day";

/** What hosts record under an id of their own. */
const recorded: ReadonlySet<Kind> = new Set(["diagnostic", "finding"]);

type Arrived = { nodeId: string; kind: Kind; correlationId?: string | undefined; observedAt: Date };

/** Of what just arrived, for incidents that are there. */
export async function linkArrived(tx: Tx, arrived: readonly Arrived[]): Promise<void> {
  const all = arrived.filter(({ kind, correlationId }) => recorded.has(kind) && correlationId !== undefined);
  if (all.length === 0) return;
  await link(
    tx,
    tx`SELECT * FROM unnest(${all.map(({ nodeId }) => nodeId)}::uuid[],
      ${all.map(({ correlationId }) => correlationId ?? null)}::text[],
      ${all.map(({ observedAt }) => observedAt)}::timestamptz[])`,
  );
}

/** Of what is known of the nodes, for incidents that were just opened. */
export async function linkStored(tx: Tx, nodeIds: readonly string[]): Promise<void> {
  await link(
    tx,
    tx`SELECT node_id, correlation_id, seen_at FROM node_observations
       WHERE node_id = ANY(${nodeIds as string[]}::uuid[]) AND kind = ANY(${[...recorded]}::text[])
         AND replaced_at IS NULL`,
  );
}

/** By the host's clock, which may be off as far as that is tolerated. */
const link = (tx: Tx, episodes: Fragment) => tx`
  WITH found AS (
    SELECT i.id, array_agg(DISTINCT e.correlation_id) AS ids
    FROM (${episodes}) AS e (node_id, correlation_id, at)
    JOIN incidents i ON i.node_id = e.node_id AND e.at >= i.began_at - ${TOLERANCE}::interval
      AND (i.closed_at IS NULL OR e.at <= i.closed_at + ${TOLERANCE}::interval
        AND i.closed_at > now() - ${ARRIVE_WITHIN}::interval)
    WHERE e.correlation_id IS NOT NULL AND e.correlation_id <> ALL (i.episodes)
    GROUP BY i.id)
  UPDATE incidents i SET episodes = (i.episodes || found.ids)[1:${MOST_EPISODES}::int]
  FROM found WHERE i.id = found.id AND cardinality(i.episodes) < ${MOST_EPISODES}`;

const TOLERANCE = `${CLOCK_TOLERANCE_SECONDS} seconds`;
