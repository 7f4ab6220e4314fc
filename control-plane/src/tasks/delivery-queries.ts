// Statements of the queue that only read tasks; those that change them are in transitions/. Each uses indexes only.

import type { Queryable } from "../database/connect.ts";
import { hasOutcome, isWaiting } from "./transitions/sql.ts";

/**
 * Statements are planned once per connection, even if the statistics of the table change: planning the claim again took
 * longer than running it.
 */
export const deliveryParameters = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
};

export type Due = { node_id: string; why: "claim" | "stop" };

const waits = isWaiting();
const isToStop = hasOutcome("hold", "asked_to_stop");

/**
 * All nodes that have something to claim, and those of the held tasks that their node should stop. Goes from one node
 * with queued tasks to the next: with the ids of ten thousand waiting nodes, the api took 30 ms to write the statement.
 */
export async function selectDueNodes(sql: Queryable, heldIds: readonly string[]): Promise<Due[]> {
  return sql<Due[]>`
    WITH RECURSIVE waiting AS (
      (SELECT t.node_id FROM tasks t WHERE ${waits} ORDER BY t.node_id LIMIT 1)
      UNION ALL
      SELECT (SELECT t.node_id FROM tasks t
              WHERE ${waits} AND t.node_id > w.node_id ORDER BY t.node_id LIMIT 1)
      FROM waiting w WHERE w.node_id IS NOT NULL
    )
    SELECT node_id, 'claim' AS why FROM waiting WHERE node_id IS NOT NULL
    UNION ALL
    SELECT t.node_id, 'stop' FROM tasks t
    WHERE t.id = ANY (${[...heldIds]}::uuid[])
      AND (${isToStop} AND NOT t.reported OR t.cancel_requested_at IS NOT NULL)`;
}

export async function selectTypes(
  sql: Queryable,
  taskIds: readonly string[],
): Promise<{ id: string; type: string }[]> {
  return sql<{ id: string; type: string }[]>`SELECT id, type FROM tasks WHERE id = ANY (${[...taskIds]}::uuid[])`;
}
