// Stores how far a node is with a task, which also renews its lease. A task that must not run twice has begun by then and needs
// its secrets no more.

import type { Queryable } from "../../database/connect.ts";
import { hasOutcome, isCurrent, newLease } from "./sql.ts";

export type Progress = { generation: number; phase: string; progress: string | null; timings: string };

const isOfThisDelivery = isCurrent("t", "r.generation");
const renews = hasOutcome("progress", "renewed");
const asksToStop = hasOutcome("progress", "asked_to_stop");

/**
 * `cancel`: the node is to stop. Undefined revision: not stored, because the task is not with this node as that delivery.
 * After a crash undid its claim that is no reason to stop: the node's next poll restores it.
 */
export async function storeProgress(
  sql: Queryable,
  task: { nodeId: string; taskId: string },
  report: Progress,
): Promise<{ cancel: boolean; revision: number | undefined }> {
  const [row] = await sql<{ cancel: boolean; revision: number | null }[]>`
    WITH report AS (SELECT ${report.generation}::integer AS generation), stored AS (
      UPDATE tasks t SET phase = ${report.phase}, progress = ${report.progress}::text::json,
        timings = ${report.timings}::text::json, revision = t.revision + 1, lease_until = ${newLease},
        sealed_secrets = CASE WHEN t.idempotent THEN t.sealed_secrets END
      FROM report r
      WHERE t.id = ${task.taskId} AND t.node_id = ${task.nodeId} AND ${renews} AND ${isOfThisDelivery}
      RETURNING t.cancel_requested_at IS NOT NULL AS cancel, t.revision)
    SELECT cancel, revision FROM stored
    UNION ALL
    SELECT ${asksToStop} OR NOT (${isOfThisDelivery}), NULL FROM tasks t, report r
    WHERE t.id = ${task.taskId} AND t.node_id = ${task.nodeId} AND NOT EXISTS (SELECT FROM stored)`;
  return { cancel: row?.cancel ?? true, revision: row?.revision ?? undefined };
}
