// Ends tasks by the results of their nodes: the current delivery's is accepted once, any other is kept as evidence.
//
// Locks: waits for the rows, and takes them in order of id, so that no two statements wait for each other.

import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import type { Queryable } from "../../database/connect.ts";
import { byEvent, isCurrent, isRepeated } from "./sql.ts";
import { type TaskEvent, targetOf } from "./table.ts";

export type ResultEvent = TaskEvent & ("result_succeeded" | "result_failed" | "result_cancelled");

export type ReportedResult = {
  nodeId: string;
  taskId: string;
  generation: number;
  event: ResultEvent;
  /** JSON. */
  result: string | null;
  failure: string | null;
  timings: string;
  outcome: string;
};

export type Judged = {
  task_id: string;
  /** `revoked`: nothing is accepted from the node any more. */
  verdict: "accepted" | "duplicate" | "late" | "revoked";
  /** The status and the revision after an accepted result. */
  status: TaskStatus;
  revision: number;
  /** It ran in an order with others, one of which may be next. */
  ordered: boolean;
};

const columns = { event: "e.event", status: "l.status" };
const events: TaskEvent[] = [
  "result_succeeded",
  "result_failed",
  "result_cancelled",
  "result_stale",
  "result_repeated",
];
const verdict = byEvent(columns, events, (outcome) => (typeof outcome === "object" ? "accepted" : outcome));
const newStatus = byEvent(columns, events, targetOf);
const repeated = isRepeated("l", "l.delivery");
const current = isCurrent("l", "l.delivery");

/** A task may occur in `results` only once. Returns one verdict for each task of its node, in no particular order. */
export async function acceptResults(sql: Queryable, results: readonly ReportedResult[]): Promise<Judged[]> {
  return sql<Judged[]>`
    WITH reported AS MATERIALIZED (
      SELECT * FROM unnest(
        ${results.map((one) => one.nodeId)}::uuid[], ${results.map((one) => one.taskId)}::uuid[],
        ${results.map((one) => one.generation)}::integer[], ${results.map((one) => one.event)}::text[],
        ${results.map((one) => one.result)}::text[], ${results.map((one) => one.failure)}::text[],
        ${results.map((one) => one.timings)}::text[], ${results.map((one) => one.outcome)}::text[]
      ) AS r (node_id, task_id, delivery, event, result, failure, timings, outcome)
    ), locked AS MATERIALIZED (
      SELECT r.*, t.org_id, t.status, t.generation, t.reported, t.order_key, t.revision
      FROM reported r JOIN tasks t ON t.id = r.task_id AND t.node_id = r.node_id
      ORDER BY t.id FOR NO KEY UPDATE OF t
    ), judged AS MATERIALIZED (
      SELECT l.*, ${newStatus} AS new_status,
        CASE WHEN n.revoked_at IS NOT NULL THEN 'revoked' ELSE ${verdict} END AS verdict
      FROM locked l JOIN nodes n ON n.id = l.node_id CROSS JOIN LATERAL (SELECT CASE
        WHEN ${repeated} THEN 'result_repeated' WHEN ${current} THEN l.event ELSE 'result_stale' END AS event) AS e
    ), ended AS (
      UPDATE tasks t SET
        status = j.new_status, result = j.result::json, failure = j.failure::json, timings = j.timings::json,
        generation = j.delivery, reported = true, lease_until = NULL, finished_at = now(), revision = t.revision + 1
      FROM judged j WHERE t.id = j.task_id AND j.verdict = 'accepted'
    ), kept AS (
      INSERT INTO late_results (task_id, org_id, node_id, generation, outcome)
      SELECT j.task_id, j.org_id, j.node_id, j.delivery, j.outcome::json FROM judged j
      -- As many as there were deliveries, whatever numbers a node invents.
      WHERE j.verdict = 'late' AND j.delivery <= j.generation + 1
      ON CONFLICT DO NOTHING
    )
    SELECT task_id, verdict, new_status AS status, revision + 1 AS revision, order_key IS NOT NULL AS ordered
    FROM judged`;
}
