// SQL of tasks as producers see them: made, read, listed, cancelled. Runs confined to one
// organization, or as the system. What nodes do with tasks is in delivery-queries.ts.

import type { Task, TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import { LEASE_SECONDS } from "@holdfast/contracts/node-limits";
import type { PhaseTimings, TaskFailure } from "@holdfast/contracts/node-protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import { type Caller, callerSql, reaches } from "../allocations/access.ts";
import type { AuditActor } from "../audit/record.ts";
import type { Queryable, Tx } from "../database/connect.ts";
import { commonFailure } from "./failures.ts";

export type TaskRow = {
  id: string;
  node_id: string;
  type: string;
  status: TaskStatus;
  priority: number;
  params: unknown;
  phase: string | null;
  progress: unknown;
  timings: PhaseTimings;
  result: unknown;
  failure: TaskFailure | null;
  generation: number;
  revision: number;
  cancel_requested_at: Date | null;
  created_by: string;
  correlation_id: string;
  created_at: Date;
  expires_at: Date;
  dispatched_at: Date | null;
  finished_at: Date | null;
};

const columns = (sql: Queryable) => sql`
  t.id, t.node_id, t.type, t.status, t.priority, t.params, t.phase, t.progress, t.timings, t.result, t.failure,
  t.generation, t.revision, t.cancel_requested_at, t.created_by, t.correlation_id, t.created_at, t.expires_at,
  t.dispatched_at, t.finished_at`;

export function toTask(row: TaskRow): Task {
  return {
    ...row,
    // What the last report said is over when the task has ended, or waits for another delivery.
    phase: row.status === "dispatched" ? row.phase : null,
    cancel_requested_at: row.cancel_requested_at?.toISOString() ?? null,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
    dispatched_at: row.dispatched_at?.toISOString() ?? null,
    finished_at: row.finished_at?.toISOString() ?? null,
  };
}

export type SignedNewTask = {
  id: string;
  nodeId: string;
  type: string;
  params: unknown;
  idempotent: boolean;
  timeoutSeconds: number;
  /** One of these must stand in the node's last heartbeat; empty: none is asked. */
  capabilities: readonly string[];
  priority: number;
  orderKey: string | null;
  signature: string;
  expiresAt: Date;
  by: AuditActor;
  correlationId: string;
  allocationId: string | null;
  details: Record<string, unknown>;
  /** Its node waits for work: claimed as it is made, unless older tasks wait. Never one with an order. */
  claim?: boolean;
};

/** Inserts only for a node that is active and capable: one round trip when all is well. Locks the node's key. */
export async function insertTask(
  tx: Tx,
  task: SignedNewTask,
  { routine = false } = {},
): Promise<TaskRow | undefined> {
  const [row] = await tx<TaskRow[]>`
    INSERT INTO tasks AS t (id, org_id, node_id, type, params, idempotent, timeout_seconds, priority, order_key,
      signature, expires_at, created_by, correlation_id, allocation_id, routine)
    SELECT ${task.id}, n.org_id, n.id, ${task.type}, ${JSON.stringify(task.params)}::text::json, ${task.idempotent},
      ${task.timeoutSeconds}, ${task.priority}, ${task.orderKey}, ${task.signature}, ${task.expiresAt},
      ${task.by.actor_name}, ${task.correlationId}, ${task.allocationId}, ${routine}
    FROM nodes n
    WHERE n.id = ${task.nodeId} AND n.status = 'active' AND n.revoked_at IS NULL
      AND (${task.capabilities.length === 0} OR EXISTS (
        SELECT FROM node_presence p, json_array_elements_text(p.heartbeat #> '{facts,capabilities}') AS c (name)
        WHERE p.node_id = n.id AND c.name = ANY (${[...task.capabilities]}::text[])))
    RETURNING ${columns(tx)}`;
  return row;
}

/**
 * The same for many at once, with the audit events of their making; for producers inside the control plane that
 * change nothing else. A task that is not among the answers was not made.
 */
export async function insertTasks(sql: Queryable, tasks: readonly SignedNewTask[]): Promise<TaskRow[]> {
  const all = <T>(of: (task: SignedNewTask) => T): T[] => tasks.map(of);
  return sql<TaskRow[]>`
    WITH asked AS MATERIALIZED (
      SELECT * FROM unnest(
        ${all((one) => one.id)}::uuid[], ${all((one) => one.nodeId)}::uuid[], ${all((one) => one.type)}::text[],
        ${all((one) => JSON.stringify(one.params))}::text[], ${all((one) => String(one.idempotent))}::text[]::boolean[],
        ${all((one) => one.timeoutSeconds)}::integer[], ${all((one) => one.priority)}::smallint[],
        ${all((one) => one.orderKey)}::text[], ${all((one) => one.signature)}::text[],
        ${all((one) => one.expiresAt.toISOString())}::timestamptz[], ${all((one) => one.by.actor_name)}::text[],
        ${all((one) => one.by.actor_type)}::text[], ${all((one) => one.by.actor_id)}::uuid[],
        ${all((one) => one.by.role)}::text[], ${all((one) => JSON.stringify(one.details))}::text[],
        ${all((one) => one.allocationId)}::uuid[], ${all((one) => one.correlationId)}::text[], ${all((one) => `{${one.capabilities.join(",")}}`)}::text[],
        ${all((one) => String(one.claim ?? false))}::text[]::boolean[], ${all(() => uuidv7())}::uuid[]
      ) AS a (id, node_id, type, params, idempotent, timeout_seconds, priority, order_key, signature, expires_at,
        created_by, actor_type, actor_id, role, details, allocation_id, correlation_id, capabilities, claim, audit_id)
    ), made AS (
      INSERT INTO tasks AS t (id, org_id, node_id, type, params, idempotent, timeout_seconds, priority, order_key,
        signature, expires_at, created_by, correlation_id, allocation_id, status, generation, revision, lease_until,
        dispatched_at)
      SELECT a.id, n.org_id, n.id, a.type, a.params::json, a.idempotent, a.timeout_seconds, a.priority, a.order_key,
        a.signature, a.expires_at, a.created_by, a.correlation_id, a.allocation_id, c.*
      FROM asked a JOIN nodes n ON n.id = a.node_id CROSS JOIN LATERAL (
        SELECT 'dispatched', 1, 2, now() + ${LEASE_SECONDS} * interval '1 second', now()
        WHERE a.claim AND NOT EXISTS (SELECT FROM tasks q WHERE q.node_id = n.id AND q.status = 'queued')
        UNION ALL SELECT 'queued', 0, 1, NULL, NULL LIMIT 1
      ) AS c
      WHERE n.status = 'active' AND n.revoked_at IS NULL
        AND (a.capabilities = '{}' OR EXISTS (
          SELECT FROM node_presence p, json_array_elements_text(p.heartbeat #> '{facts,capabilities}') AS c (name)
          WHERE p.node_id = n.id AND c.name = ANY (a.capabilities::text[])))
      RETURNING ${columns(sql)}, t.org_id
    ), audited AS (
      INSERT INTO audit_events (id, org_id, actor_type, actor_id, actor_name, role, action, target_type, target_id,
        target_name, result, correlation_id, details)
      SELECT a.audit_id, m.org_id, a.actor_type, a.actor_id, a.created_by, a.role, 'task.create', 'task', m.id::text,
        m.type, 'allowed', a.correlation_id, a.details::jsonb || jsonb_build_object('node_id', m.node_id)
      FROM made m JOIN asked a ON a.id = m.id
    )
    SELECT * FROM made`;
}

/** Why a task was not inserted. */
export async function selectNodeStanding(
  tx: Queryable,
  nodeId: string,
): Promise<{ name: string; status: string; reason: string | null; revoked: boolean } | undefined> {
  const [row] = await tx<{ name: string; status: string; reason: string | null; revoked: boolean }[]>`
    SELECT name, status, status_reason AS reason, revoked_at IS NOT NULL AS revoked FROM nodes WHERE id = ${nodeId}`;
  return row;
}

export async function selectTask(tx: Queryable, id: string): Promise<TaskRow | undefined> {
  const [row] = await tx<TaskRow[]>`SELECT ${columns(tx)} FROM tasks t WHERE t.id = ${id}`;
  return row;
}

/** Of a task `t`: it works for no allocation, or for one that the caller reaches. */
const isSeenBy = (tx: Tx, caller: Caller) => tx`
  (t.allocation_id IS NULL OR EXISTS (
    SELECT FROM allocations a WHERE a.id = t.allocation_id AND ${reaches(tx, callerSql(tx, caller), "view")}))`;

/** Undefined also for the task of an allocation that the caller does not reach. */
export async function selectTaskFor(tx: Tx, caller: Caller, id: string): Promise<TaskRow | undefined> {
  const [row] = await tx<TaskRow[]>`
    SELECT ${columns(tx)} FROM tasks t WHERE t.id = ${id} AND ${isSeenBy(tx, caller)}`;
  return row;
}

export async function selectTasks(
  tx: Tx,
  caller: Caller,
  page: { before: string; limit: number; nodeId?: string; status?: TaskStatus; type?: string },
): Promise<TaskRow[]> {
  return tx<TaskRow[]>`
    SELECT ${columns(tx)} FROM tasks t
    WHERE t.id < ${page.before} AND ${isSeenBy(tx, caller)}
      ${page.nodeId === undefined ? tx`` : tx`AND t.node_id::text = ${page.nodeId}`}
      ${page.status === undefined ? tx`` : tx`AND t.status = ${page.status}`}
      AND ${page.type === undefined ? tx`NOT t.routine` : tx`t.type = ${page.type}`}
    ORDER BY t.id DESC LIMIT ${page.limit + 1}`;
}

/** Queued: ended at once. Dispatched: its node is to be told. Waits for a claim or result of the row under way. */
export async function requestCancel(tx: Tx, id: string): Promise<TaskRow | undefined> {
  const failure = JSON.stringify(commonFailure("task_cancelled"));
  const [row] = await tx<TaskRow[]>`
    UPDATE tasks AS t SET
      status = CASE t.status WHEN 'queued' THEN 'cancelled' ELSE t.status END,
      failure = CASE t.status WHEN 'queued' THEN ${failure}::text::json END,
      finished_at = CASE t.status WHEN 'queued' THEN now() END,
      cancel_requested_at = now(),
      revision = t.revision + 1
    WHERE t.id = ${id} AND t.status IN ('queued', 'dispatched') AND t.cancel_requested_at IS NULL
    RETURNING ${columns(tx)}`;
  return row ?? selectTask(tx, id);
}

export type Revision = { id: string; revision: number; ended: boolean };

/** One look at everything that is awaited in this process. */
export async function selectRevisions(sql: Queryable, ids: readonly string[]): Promise<Revision[]> {
  return sql<Revision[]>`
    SELECT id, revision, finished_at IS NOT NULL AS ended FROM tasks WHERE id = ANY (${[...ids]}::uuid[])`;
}
