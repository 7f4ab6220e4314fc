// Ends tasks by the results of their nodes: the current delivery's is accepted once, any other is kept as evidence.
//
// Locks: waits for the rows, and takes them in order of id, so that no two statements wait for each other.

import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import { ConstantSql, type Queryable, rowsOf } from "../../database/connect.ts";
import { targetOf } from "../../mechanisms/transition-sql.ts";
import { byEvent, isCurrent, isRepeated } from "./sql.ts";
import type { TaskEvent } from "./table.ts";

export type ResultEvent = TaskEvent & ("result_succeeded" | "result_failed" | "result_cancelled");

export type ReportedResult = {
  nodeId: string;
  /** Of the agent that reports it, if that is known. */
  instanceId?: string | undefined;
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

const reported = rowsOf<ReportedResult>({
  node_id: ["uuid", (one) => one.nodeId],
  instance_id: ["uuid", (one) => one.instanceId ?? null],
  task_id: ["uuid", (one) => one.taskId],
  delivery: ["integer", (one) => one.generation],
  event: ["text", (one) => one.event],
  result: ["text", (one) => one.result],
  failure: ["text", (one) => one.failure],
  timings: ["text", (one) => one.timings],
  outcome: ["text", (one) => one.outcome],
});

const events: TaskEvent[] = ["result_succeeded", "result_failed", "result_cancelled"];
/** Null where the table keeps the status. */
const newStatus = byEvent({ event: "r.event", status: "t.status" }, events, targetOf);
const repeats = isRepeated("t", "r.delivery");
const isOfThisDelivery = isCurrent("t", "r.delivery");

/** Ends the row `t` as `r` reports it. */
const endTask = new ConstantSql(`UPDATE tasks t SET
  status = ${newStatus.text}, result = r.result::json, failure = r.failure::json, timings = r.timings::json,
  generation = r.delivery, reported = true, reported_by = r.instance_id, lease_until = NULL, finished_at = now(), revision = t.revision + 1,
  sealed_secrets = NULL`);

/** A task may occur in `results` only once. Returns one verdict for each task of its node, in no particular order. */
export async function acceptResults(sql: Queryable, results: readonly ReportedResult[]): Promise<Judged[]> {
  if (results.length === 1) {
    const accepted = await acceptOne(sql, results);
    if (accepted.length === 1) return accepted;
  }
  return judge(sql, results);
}

/** The result that the row awaits, as nearly all are. Any other is left as it is, to be judged. */
async function acceptOne(sql: Queryable, results: readonly ReportedResult[]): Promise<Judged[]> {
  return sql<Judged[]>`
    ${endTask} FROM (${reported(results)}) AS r JOIN nodes n ON n.id = r.node_id
    WHERE t.id = r.task_id AND t.node_id = r.node_id AND n.revoked_at IS NULL
      AND NOT (${repeats}) AND ${isOfThisDelivery} AND ${newStatus} IS NOT NULL
    RETURNING t.id AS task_id, 'accepted' AS verdict, t.status, t.revision, t.order_key IS NOT NULL AS ordered`;
}

const judging = { event: "e.event", status: "l.status" };
const judged = {
  status: byEvent(judging, events, targetOf),
  verdict: byEvent(judging, [...events, "result_stale", "result_repeated"], (outcome) =>
    typeof outcome === "object" ? "accepted" : outcome,
  ),
  isRepeated: isRepeated("l", "l.delivery"),
  isCurrent: isCurrent("l", "l.delivery"),
};

/** Locks the rows first, so that each is judged as it is when it changes. */
async function judge(sql: Queryable, results: readonly ReportedResult[]): Promise<Judged[]> {
  return sql<Judged[]>`
    WITH locked AS MATERIALIZED (
      SELECT r.*, t.org_id, t.status, t.generation, t.reported, t.order_key, t.revision
      FROM (${reported(results)}) AS r JOIN tasks t ON t.id = r.task_id AND t.node_id = r.node_id
      ORDER BY t.id FOR NO KEY UPDATE OF t
    ), judged AS MATERIALIZED (
      SELECT l.*, ${judged.status} AS new_status,
        CASE WHEN n.revoked_at IS NOT NULL THEN 'revoked' ELSE ${judged.verdict} END AS verdict
      FROM locked l JOIN nodes n ON n.id = l.node_id CROSS JOIN LATERAL (SELECT CASE
        WHEN ${judged.isRepeated} THEN 'result_repeated' WHEN ${judged.isCurrent} THEN l.event
        ELSE 'result_stale' END AS event) AS e
    ), ended AS (
      ${endTask} FROM judged r WHERE t.id = r.task_id AND r.verdict = 'accepted'
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
