// Inserts tasks. One whose node waits for work is claimed by the statement that creates it.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { AuditActor } from "../../audit/record.ts";
import type { Queryable, Tx } from "../../database/connect.ts";
import { literal } from "../../mechanisms/transition-sql.ts";
import { type TaskRow, taskColumns } from "../queries.ts";
import { isWaiting, newLease } from "./sql.ts";
import { CLAIMED_STATUS, INITIAL_STATUS } from "./table.ts";

export type SignedNewTask = {
  id: string;
  nodeId: string;
  type: string;
  params: unknown;
  idempotent: boolean;
  timeoutSeconds: number;
  /** One of these must be in the node's last heartbeat; empty: none is required. */
  capabilities: readonly string[];
  priority: number;
  orderKey: string | null;
  signature: string;
  expiresAt: Date;
  by: AuditActor;
  correlationId: string;
  allocationId: string | null;
  details: Record<string, unknown>;
  /** Its node waits for work: it is claimed in the same statement, unless older tasks wait. Never one with an order. */
  claim?: boolean;
};

/** Inserts only for a node that is active and capable, in one round trip. Locks the node's key. */
export async function insertTask(
  tx: Tx,
  task: SignedNewTask,
  { routine = false } = {},
): Promise<TaskRow | undefined> {
  const [row] = await tx<TaskRow[]>`
    INSERT INTO tasks AS t (id, org_id, node_id, type, params, idempotent, timeout_seconds, priority, order_key,
      signature, expires_at, created_by, correlation_id, allocation_id, routine, status)
    SELECT ${task.id}, n.org_id, n.id, ${task.type}, ${JSON.stringify(task.params)}::text::json, ${task.idempotent},
      ${task.timeoutSeconds}, ${task.priority}, ${task.orderKey}, ${task.signature}, ${task.expiresAt},
      ${task.by.actor_name}, ${task.correlationId}, ${task.allocationId}, ${routine}, ${initialStatus}
    FROM nodes n
    WHERE n.id = ${task.nodeId} AND n.status = 'active' AND n.revoked_at IS NULL
      AND (${task.capabilities.length === 0} OR EXISTS (
        SELECT FROM node_presence p, json_array_elements_text(p.heartbeat #> '{facts,capabilities}') AS c (name)
        WHERE p.node_id = n.id AND c.name = ANY (${[...task.capabilities]}::text[])))
    RETURNING ${taskColumns(tx)}`;
  return row;
}

const initialStatus = literal(INITIAL_STATUS);
const claimedStatus = literal(CLAIMED_STATUS);
const otherWaits = isWaiting("q");

/**
 * The same for many at once, with the audit events of their creation; for producers inside the control plane that
 * change nothing else. A task that is not among the rows returned was not created.
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
        SELECT ${claimedStatus}, 1, 2, ${newLease}, now()
        WHERE a.claim AND NOT EXISTS (SELECT FROM tasks q WHERE q.node_id = n.id AND ${otherWaits})
        UNION ALL SELECT ${initialStatus}, 0, 1, NULL, NULL LIMIT 1
      ) AS c
      WHERE n.status = 'active' AND n.revoked_at IS NULL
        AND (a.capabilities = '{}' OR EXISTS (
          SELECT FROM node_presence p, json_array_elements_text(p.heartbeat #> '{facts,capabilities}') AS c (name)
          WHERE p.node_id = n.id AND c.name = ANY (a.capabilities::text[])))
      RETURNING ${taskColumns(sql)}, t.org_id
    ), audited AS (
      INSERT INTO audit_events (id, org_id, actor_type, actor_id, actor_name, role, action, target_type, target_id,
        target_name, result, correlation_id, details)
      SELECT a.audit_id, m.org_id, a.actor_type, a.actor_id, a.created_by, a.role, 'task.create', 'task', m.id::text,
        m.type, 'allowed', a.correlation_id, a.details::jsonb || jsonb_build_object('node_id', m.node_id)
      FROM made m JOIN asked a ON a.id = m.id
    )
    SELECT * FROM made`;
}
