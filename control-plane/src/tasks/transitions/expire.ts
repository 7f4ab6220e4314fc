// Ends or requeues tasks by the clock: queued ones that were not delivered in time, and dispatched ones whose lease ran
// out. Rows that another statement has locked are in use again, and are left for the next run.

import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import type { Sql } from "../../database/connect.ts";
import { isOneOf, targetOf } from "../../mechanisms/transition-sql.ts";
import { commonFailure } from "../failures.ts";
import { byEvent, isChangedBy, statusAfter } from "./sql.ts";
import { openStatuses, statusesChangedBy, type TaskEvent } from "./table.ts";

/** `routine`: requested by the system again and again. */
export type Expired = { id: string; node_id: string; status: TaskStatus; routine: boolean };

/** How long a result that is on its way when its task's time is over may take. */
export const RESULT_GRACE_SECONDS = 60;

const notDelivered = isChangedBy("not_delivered");
const statusOfUndelivered = statusAfter("not_delivered");

/** At most as many as `limit`, those first that expired first. */
export async function expireUndelivered(system: Sql, limit: number): Promise<Expired[]> {
  return system<Expired[]>`
    WITH due AS MATERIALIZED (
      SELECT t.id FROM tasks t WHERE ${notDelivered} AND t.expires_at <= now()
      ORDER BY t.expires_at LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED)
    UPDATE tasks t SET status = ${statusOfUndelivered}, finished_at = now(), revision = t.revision + 1, sealed_secrets = NULL,
      failure = CASE WHEN t.generation = 0 THEN ${failure("task_not_taken")}::text
                     ELSE ${failure("task_result_missing")}::text END::json
    FROM due WHERE t.id = due.id
    RETURNING t.id, t.node_id, t.status, t.routine`;
}

const leaseEvents: TaskEvent[] = ["requeue", "abandon", "no_result"];
const endsByLease = isOneOf("t.status", [...new Set(leaseEvents.flatMap(statusesChangedBy))]);
const statusAfterLease = byEvent({ event: "e.event", status: "t.status" }, leaseEvents, targetOf);
const goesOn = isOneOf("due.new_status", openStatuses);

/** A task that is not idempotent may still be running without a lease: it has until the end of its time for a result. */
export async function settleLapsedLeases(system: Sql, limit: number): Promise<Expired[]> {
  return system<Expired[]>`
    WITH due AS MATERIALIZED (
      SELECT t.id, e.event, ${statusAfterLease} AS new_status
      FROM tasks t CROSS JOIN LATERAL (SELECT CASE
        WHEN t.cancel_requested_at IS NOT NULL THEN 'abandon'
        WHEN t.idempotent AND t.expires_at > now() THEN 'requeue'
        WHEN t.idempotent OR t.expires_at + (t.timeout_seconds + ${RESULT_GRACE_SECONDS}) * interval '1 second' <= now()
          THEN 'no_result' END AS event) AS e
      WHERE ${endsByLease} AND t.lease_until <= now() AND e.event IS NOT NULL
      LIMIT ${limit} FOR NO KEY UPDATE OF t SKIP LOCKED)
    UPDATE tasks t SET status = due.new_status, lease_until = NULL, revision = t.revision + 1,
      phase = CASE WHEN ${goesOn} THEN NULL ELSE t.phase END,
      progress = CASE WHEN ${goesOn} THEN NULL ELSE t.progress END,
      finished_at = CASE WHEN ${goesOn} THEN NULL ELSE now() END,
      sealed_secrets = CASE WHEN ${goesOn} THEN t.sealed_secrets END,
      failure = CASE due.event WHEN 'abandon' THEN ${failure("task_cancelled")}::text::json
                               WHEN 'no_result' THEN ${failure("task_result_missing")}::text::json END
    FROM due WHERE t.id = due.id
    RETURNING t.id, t.node_id, t.status, t.routine`;
}

function failure(code: Parameters<typeof commonFailure>[0]): string {
  return JSON.stringify(commonFailure(code));
}
