// Task truth, the other way: a node whose tasks expired or got no result completes one again. What was left behind is history
// then.

import type { Sql } from "../../database/connect.ts";
import { type NewObservation, recordObservations } from "../evidence/write.ts";

type Row = { node_id: string; kind: "queued_tasks" | "dispatched_tasks" };

/** Returns the ids of such nodes. By an index that holds only those with such tasks, so at any time. */
export async function observeTasksDone(system: Sql): Promise<string[]> {
  const rows = await system<Row[]>`
    SELECT o.node_id, o.kind FROM node_observations o
    WHERE o.replaced_at IS NULL AND o.value IN ('past_expiry', 'past_lease')
      AND o.kind IN ('queued_tasks', 'dispatched_tasks') AND EXISTS (
        SELECT FROM (SELECT status, finished_at FROM tasks t WHERE t.node_id::text = o.node_id::text
                     ORDER BY t.id DESC LIMIT ${LATEST}) latest
        WHERE latest.status = 'completed' AND latest.finished_at > o.seen_at)`;
  const observedAt = new Date();
  return recordObservations(
    system,
    rows.map(
      ({ node_id: nodeId, kind }): NewObservation => ({
        ...{ nodeId, kind, value: "none", observer: "control_plane", observedAt },
      }),
    ),
  );
}

/** Of a node's tasks, these are looked at. */
const LATEST = 50;
