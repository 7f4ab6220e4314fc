// SQL between the queue and the nodes. Each statement serves many nodes at once and walks indexes
// only; `deliveryParameters` keeps the planner to that.
//
// Locks: claims, renewals and sweeps skip rows that somebody else has locked, so they never wait.
// Results wait for a row, and take their rows in order of id: no two statements wait for each other.

import { LEASE_SECONDS } from "@holdfast/contracts/node-limits";
import type { Held } from "@holdfast/contracts/node-protocol";
import type { Queryable } from "../database/connect.ts";

/**
 * A plan is made once per connection, whatever the planner thinks of a table that was empty a
 * minute ago: planning the claim anew took longer than running it.
 */
export const deliveryParameters = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
};

/** The lease of a held task is written again only when this much of it is used. */
const RENEW_AFTER_SECONDS = 10;

export type Asking = { nodeId: string; room: number; holding: readonly Held[] };

export type Delivered = {
  node_id: string;
  task_id: string;
  /** To be stopped; otherwise it is offered, and all that follows is there. */
  stop: boolean;
  generation: number;
  type: string;
  params: unknown;
  expires_at: Date;
  signature: string;
  correlation_id: string;
  priority: number;
  revision: number;
};

/**
 * What each asking node gets: what was dispatched to it and did not reach it (the same delivery
 * again), then new work by priority and age, up to its room; and which of the tasks it holds it must
 * stop. The leases of those it rightly holds are renewed. A node may stand in `asking` once only.
 */
export async function deliver(sql: Queryable, asking: readonly Asking[]): Promise<Delivered[]> {
  // Most nodes hold nothing: the statement is then half as long to begin.
  const anyHeld = asking.some((one) => one.holding.length > 0);
  return sql<Delivered[]>`
    WITH asked AS MATERIALIZED (
      SELECT a.node_id, a.room, a.held::uuid[] AS held, a.generations::integer[] AS generations, n.status
      FROM unnest(
        ${asking.map((one) => one.nodeId)}::uuid[], ${asking.map((one) => one.room)}::integer[],
        ${asking.map((one) => `{${one.holding.map((task) => task.task_id).join(",")}}`)}::text[],
        ${asking.map((one) => `{${one.holding.map((task) => task.generation).join(",")}}`)}::text[]
      ) AS a (node_id, room, held, generations)
      JOIN nodes n ON n.id = a.node_id
      WHERE n.revoked_at IS NULL
    )${anyHeld ? checkHeld(sql) : sql``}, lost AS MATERIALIZED (
      SELECT a.node_id, t.id FROM asked a CROSS JOIN LATERAL (
        SELECT t.id FROM tasks t
        WHERE t.node_id = a.node_id AND t.status = 'dispatched' AND t.id <> ALL (a.held)
          AND t.cancel_requested_at IS NULL AND t.expires_at > now()
        ORDER BY t.id LIMIT a.room
        FOR NO KEY UPDATE OF t SKIP LOCKED
      ) t
      WHERE a.room > 0 AND a.status IN ('active', 'draining')
    ), picked AS MATERIALIZED (
      SELECT t.id FROM asked a CROSS JOIN LATERAL (
        SELECT t.id FROM tasks t
        WHERE t.node_id = a.node_id AND t.status = 'queued' AND t.expires_at > now() AND t.id <> ALL (a.held)
          AND (t.order_key IS NULL OR (
            SELECT true FROM tasks o
            WHERE o.node_id = t.node_id AND o.order_key = t.order_key AND o.status = 'dispatched' LIMIT 1
          ) IS NULL AND (
            SELECT true FROM tasks o
            WHERE o.node_id = t.node_id AND o.order_key = t.order_key AND o.status = 'queued' AND o.id < t.id LIMIT 1
          ) IS NULL)
        ORDER BY t.priority DESC, t.id
        LIMIT a.room - (SELECT count(*) FROM lost l WHERE l.node_id = a.node_id)
        FOR NO KEY UPDATE OF t SKIP LOCKED
      ) t
      WHERE a.room > 0 AND a.status = 'active'
    ), offered AS (
      UPDATE tasks t SET
        status = 'dispatched', generation = t.generation + (t.status = 'queued')::integer,
        lease_until = now() + ${LEASE_SECONDS} * interval '1 second',
        dispatched_at = coalesce(t.dispatched_at, now()), revision = t.revision + (t.status = 'queued')::integer
      FROM (SELECT id FROM picked UNION ALL SELECT id FROM lost) AS o WHERE t.id = o.id
      RETURNING t.node_id, t.id, t.generation, t.type, t.params, t.expires_at, t.signature, t.correlation_id,
        t.priority, t.revision
    )
    SELECT o.node_id, o.id AS task_id, false AS stop, o.generation, o.type, o.params, o.expires_at, o.signature,
      o.correlation_id, o.priority, o.revision
    FROM offered o
    ${anyHeld ? toStop(sql) : sql``}`;
}

/** What the nodes say they hold, beside what is written of it; renews the leases of what is theirs. */
const checkHeld = (sql: Queryable) => sql`, held AS MATERIALIZED (
      SELECT a.node_id, h.task_id, h.generation,
        coalesce(
          t.node_id = a.node_id AND t.cancel_requested_at IS NULL
          -- A crash can undo one claim of a task, not two: a lease lies between them.
          AND h.generation BETWEEN t.generation AND t.generation + 1 AND (
            t.status = 'dispatched'
            OR t.status = 'queued' AND (t.order_key IS NULL OR (
              SELECT true FROM tasks o
              WHERE o.node_id = t.node_id AND o.order_key = t.order_key AND o.status = 'dispatched' LIMIT 1) IS NULL)
          ), false) AS rightly,
        -- It told the end itself: it need not be told.
        coalesce(t.node_id = a.node_id AND t.reported AND t.generation = h.generation, false) AS over,
        t.status = 'queued' OR t.generation < h.generation
          OR t.lease_until < now() + ${LEASE_SECONDS - RENEW_AFTER_SECONDS} * interval '1 second' AS due
      FROM asked a
      CROSS JOIN LATERAL unnest(a.held, a.generations) AS h (task_id, generation)
      LEFT JOIN tasks t ON t.id = h.task_id
    ), renewing AS MATERIALIZED (
      SELECT t.id, h.generation FROM held h JOIN tasks t ON t.id = h.task_id
      WHERE h.rightly AND h.due AND t.status IN ('queued', 'dispatched') AND t.generation <= h.generation
        AND t.cancel_requested_at IS NULL
      FOR NO KEY UPDATE OF t SKIP LOCKED
    ), renewed AS (
      UPDATE tasks t SET
        status = 'dispatched', generation = r.generation, lease_until = now() + ${LEASE_SECONDS} * interval '1 second',
        dispatched_at = coalesce(t.dispatched_at, now()), revision = t.revision + (t.status = 'queued')::integer
      FROM renewing r WHERE t.id = r.id
    )`;

const toStop = (sql: Queryable) => sql`
    UNION ALL
    SELECT h.node_id, h.task_id, true, h.generation, '', NULL, now(), '', '', 0, 0 FROM held h
    WHERE NOT h.rightly AND NOT h.over`;

export type Due = { node_id: string; why: "queued" | "stop" };

/**
 * Which nodes have something to take, whoever they are, and which of the held tasks their node should stop. Goes from
 * one node with queued tasks to the next: asked for each of ten thousand that wait, it took the api 30 ms to write the
 * question down.
 */
export async function selectDueNodes(sql: Queryable, heldIds: readonly string[]): Promise<Due[]> {
  return sql<Due[]>`
    WITH RECURSIVE queued AS (
      (SELECT node_id FROM tasks WHERE status = 'queued' ORDER BY node_id LIMIT 1)
      UNION ALL
      SELECT (SELECT t.node_id FROM tasks t
              WHERE t.status = 'queued' AND t.node_id > q.node_id ORDER BY t.node_id LIMIT 1)
      FROM queued q WHERE q.node_id IS NOT NULL
    )
    SELECT node_id, 'queued' AS why FROM queued WHERE node_id IS NOT NULL
    UNION ALL
    SELECT t.node_id, 'stop' FROM tasks t
    WHERE t.id = ANY (${[...heldIds]}::uuid[])
      AND (t.status NOT IN ('queued', 'dispatched') AND NOT t.reported OR t.cancel_requested_at IS NOT NULL)`;
}

export type Progress = { generation: number; phase: string; progress: string | null; timings: string };

/** Undefined revision: not stored, because the task is no longer with this node as that delivery. */
export async function storeProgress(
  sql: Queryable,
  task: { nodeId: string; taskId: string },
  told: Progress,
): Promise<{ cancel: boolean; revision: number | undefined }> {
  const [row] = await sql<{ cancel: boolean; revision: number | null }[]>`
    WITH told AS (
      UPDATE tasks SET phase = ${told.phase}, progress = ${told.progress}::text::json,
        timings = ${told.timings}::text::json, revision = revision + 1,
        lease_until = now() + ${LEASE_SECONDS} * interval '1 second'
      WHERE id = ${task.taskId} AND node_id = ${task.nodeId} AND status = 'dispatched'
        AND generation = ${told.generation}
      RETURNING cancel_requested_at IS NOT NULL AS cancel, revision)
    SELECT cancel, revision FROM told
    UNION ALL
    -- A claim that a crash undid: the node is still the right one.
    SELECT t.status <> 'queued' OR t.generation > ${told.generation}, NULL FROM tasks t
    WHERE t.id = ${task.taskId} AND t.node_id = ${task.nodeId} AND NOT EXISTS (SELECT FROM told)`;
  return { cancel: row?.cancel ?? true, revision: row?.revision ?? undefined };
}

export async function selectTypes(
  sql: Queryable,
  taskIds: readonly string[],
): Promise<{ id: string; type: string }[]> {
  return sql<{ id: string; type: string }[]>`SELECT id, type FROM tasks WHERE id = ANY (${[...taskIds]}::uuid[])`;
}

export type Ending = {
  nodeId: string;
  taskId: string;
  generation: number;
  status: "completed" | "failed" | "cancelled";
  /** JSON. */
  result: string | null;
  failure: string | null;
  timings: string;
  outcome: string;
};

export type Judged = {
  task_id: string;
  /** `revoked`: the node may say nothing any more. */
  verdict: "accepted" | "duplicate" | "late" | "revoked";
  /** After an accepted result. */
  revision: number;
  /** It ran in an order with others, one of which may be next. */
  ordered: boolean;
};

/**
 * Ends tasks by their nodes' results. A task may stand in `endings` once only. One verdict for each
 * that is a task of its node, in no particular order.
 */
export async function acceptResults(sql: Queryable, endings: readonly Ending[]): Promise<Judged[]> {
  return sql<Judged[]>`
    WITH reported AS MATERIALIZED (
      SELECT * FROM unnest(
        ${endings.map((one) => one.nodeId)}::uuid[], ${endings.map((one) => one.taskId)}::uuid[],
        ${endings.map((one) => one.generation)}::integer[], ${endings.map((one) => one.status)}::text[],
        ${endings.map((one) => one.result)}::text[], ${endings.map((one) => one.failure)}::text[],
        ${endings.map((one) => one.timings)}::text[], ${endings.map((one) => one.outcome)}::text[]
      ) AS r (node_id, task_id, generation, status, result, failure, timings, outcome)
    ), locked AS MATERIALIZED (
      SELECT r.*, t.org_id, t.status AS was, t.generation AS current, t.reported, t.order_key, t.revision
      FROM reported r JOIN tasks t ON t.id = r.task_id AND t.node_id = r.node_id
      ORDER BY t.id FOR NO KEY UPDATE OF t
    ), judged AS MATERIALIZED (
      SELECT l.*,
        CASE
          WHEN n.revoked_at IS NOT NULL THEN 'revoked'
          WHEN l.was IN ('queued', 'dispatched') AND l.generation BETWEEN l.current AND l.current + 1 THEN 'accepted'
          WHEN l.reported AND l.generation = l.current THEN 'duplicate'
          ELSE 'late'
        END AS verdict
      FROM locked l JOIN nodes n ON n.id = l.node_id
    ), ended AS (
      UPDATE tasks t SET
        status = j.status, result = j.result::json, failure = j.failure::json, timings = j.timings::json,
        generation = j.generation, reported = true, lease_until = NULL, finished_at = now(), revision = t.revision + 1
      FROM judged j WHERE t.id = j.task_id AND j.verdict = 'accepted'
    ), kept AS (
      INSERT INTO late_results (task_id, org_id, node_id, generation, outcome)
      SELECT j.task_id, j.org_id, j.node_id, j.generation, j.outcome::json FROM judged j
      -- As many as there were deliveries, whatever numbers a node invents.
      WHERE j.verdict = 'late' AND j.generation <= j.current + 1
      ON CONFLICT DO NOTHING
    )
    SELECT task_id, verdict, revision + 1 AS revision, order_key IS NOT NULL AS ordered FROM judged`;
}
