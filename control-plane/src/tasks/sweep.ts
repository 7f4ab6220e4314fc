// Ends or re-queues what nobody works on any more: queued tasks whose time is over, and dispatched
// ones whose lease ran out. What a lapsed lease means is `lapsed` in tasks/state.ts; the statement
// below says the same, and a test compares them. Rows that somebody else has locked are in work
// again, and are left for the next turn.

import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import type { Sql } from "../database/connect.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { commonFailure } from "./failures.ts";
import { RESULT_GRACE_SECONDS } from "./state.ts";

export type Swept = { expired: number; requeued: number; cancelled: number };

const BATCH = 1_000;

type SweptRow = { id: string; node_id: string; status: TaskStatus };

export async function sweepTasks(system: Sql, signals: Pick<Signals, "publish">): Promise<Swept> {
  const swept: Swept = { expired: 0, requeued: 0, cancelled: 0 };
  for (const sweep of [expireQueued, settleLapsed]) {
    for (;;) {
      const rows = await sweep(system);
      for (const row of rows) swept[counterOf(row.status)] += 1;
      signals.publish(
        "task",
        rows.map((row) => row.id),
      );
      // One is queued again, or the next of its order may go.
      signals.publish("node_work", [...new Set(rows.map((row) => row.node_id))]);
      if (rows.length < BATCH) break;
    }
  }
  return swept;
}

function counterOf(status: TaskStatus): keyof Swept {
  if (status === "queued") return "requeued";
  return status === "cancelled" ? "cancelled" : "expired";
}

async function expireQueued(system: Sql): Promise<SweptRow[]> {
  return system<SweptRow[]>`
    WITH due AS MATERIALIZED (
      SELECT id FROM tasks WHERE status = 'queued' AND expires_at <= now()
      ORDER BY expires_at LIMIT ${BATCH} FOR NO KEY UPDATE SKIP LOCKED)
    UPDATE tasks t SET status = 'expired', finished_at = now(), revision = t.revision + 1,
      failure = CASE WHEN t.generation = 0 THEN ${failure("task_not_taken")}::text
                     ELSE ${failure("task_result_missing")}::text END::json
    FROM due WHERE t.id = due.id
    RETURNING t.id, t.node_id, t.status`;
}

async function settleLapsed(system: Sql): Promise<SweptRow[]> {
  return system<SweptRow[]>`
    WITH due AS MATERIALIZED (
      SELECT id,
        CASE WHEN cancel_requested_at IS NOT NULL THEN 'cancelled'
             WHEN idempotent AND expires_at > now() THEN 'queued'
             ELSE 'expired' END AS becomes
      FROM tasks
      WHERE status = 'dispatched' AND lease_until <= now()
        AND (idempotent OR cancel_requested_at IS NOT NULL
          OR expires_at + (timeout_seconds + ${RESULT_GRACE_SECONDS}) * interval '1 second' <= now())
      LIMIT ${BATCH} FOR NO KEY UPDATE SKIP LOCKED)
    UPDATE tasks t SET status = due.becomes, lease_until = NULL, revision = t.revision + 1,
      phase = CASE WHEN due.becomes <> 'queued' THEN t.phase END,
      progress = CASE WHEN due.becomes <> 'queued' THEN t.progress END,
      finished_at = CASE WHEN due.becomes <> 'queued' THEN now() END,
      failure = CASE due.becomes WHEN 'cancelled' THEN ${failure("task_cancelled")}::text::json
                                 WHEN 'expired' THEN ${failure("task_result_missing")}::text::json END
    FROM due WHERE t.id = due.id
    RETURNING t.id, t.node_id, t.status`;
}

function failure(code: Parameters<typeof commonFailure>[0]): string {
  return JSON.stringify(commonFailure(code));
}
