// Inserts tasks. One whose node waits for work is claimed by the statement that creates it.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { AuditActor } from "../../audit/record.ts";
import { ConstantSql, type Queryable, rowsOf, type Tx } from "../../database/connect.ts";
import { literal } from "../../mechanisms/transition-sql.ts";
import { type TaskRow, taskColumns } from "../queries.ts";
import { isWaiting, newLease } from "./sql.ts";
import { CLAIMED_STATUS, INITIAL_STATUS } from "./table.ts";

export type SignedNewTask = {
  id: string;
  nodeId: string;
  type: string;
  params: unknown;
  sealedSecrets?: Buffer | null;
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
  /** The task that it repeats. */
  replays?: string | null;
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
      signature, expires_at, created_by, correlation_id, allocation_id, replays, routine, sealed_secrets, incident_id, status)
    SELECT ${task.id}, n.org_id, n.id, ${task.type}, ${JSON.stringify(task.params)}::text::json, ${task.idempotent},
      ${task.timeoutSeconds}, ${task.priority}, ${task.orderKey}, ${task.signature}, ${task.expiresAt},
      ${task.by.actor_name}, ${task.correlationId}, ${task.allocationId}, ${task.replays ?? null}, ${routine},
      ${task.sealedSecrets ?? null}, ${openIncident},
      ${initialStatus}
    FROM nodes n
    WHERE n.id = ${task.nodeId} AND n.status = 'active' AND n.revoked_at IS NULL
      AND (${task.capabilities.length === 0} OR EXISTS (
        SELECT FROM node_presence p, json_array_elements_text(p.heartbeat #> '{facts,capabilities}') AS c (name)
        WHERE p.node_id = n.id AND c.name = ANY (${[...task.capabilities]}::text[])))
    RETURNING ${taskColumns(tx)}`;
  return row;
}

/** Of a node `n`; found by the key of the node's verdict, and not locked. */
const openIncident = new ConstantSql("(SELECT v.incident_id FROM node_verdicts v WHERE v.node_id = n.id)");
const initialStatus = literal(INITIAL_STATUS);
const claimedStatus = literal(CLAIMED_STATUS);
const otherWaits = isWaiting("q");

const asked = rowsOf<SignedNewTask>({
  id: ["uuid", (task) => task.id],
  node_id: ["uuid", (task) => task.nodeId],
  type: ["text", (task) => task.type],
  params: ["text", (task) => JSON.stringify(task.params)],
  sealed_secrets: ["bytea", (task) => task.sealedSecrets ?? null],
  idempotent: ["boolean", (task) => task.idempotent],
  timeout_seconds: ["integer", (task) => task.timeoutSeconds],
  priority: ["smallint", (task) => task.priority],
  order_key: ["text", (task) => task.orderKey],
  signature: ["text", (task) => task.signature],
  expires_at: ["timestamptz", (task) => task.expiresAt],
  created_by: ["text", (task) => task.by.actor_name],
  actor_type: ["text", (task) => task.by.actor_type],
  actor_id: ["uuid", (task) => task.by.actor_id],
  role: ["text", (task) => task.by.role],
  details: ["text", (task) => JSON.stringify(task.details)],
  allocation_id: ["uuid", (task) => task.allocationId],
  correlation_id: ["text", (task) => task.correlationId],
  capabilities: ["text[]", (task) => task.capabilities],
  claim: ["boolean", (task) => task.claim ?? false],
  audit_id: ["uuid", () => uuidv7()],
});

/**
 * The same with the audit events of their creation, for one or many; for producers inside the control plane that change
 * nothing else. A task that is not among the rows returned was not created.
 */
export async function insertTasks(sql: Queryable, tasks: readonly SignedNewTask[]): Promise<TaskRow[]> {
  const rows = await sql<MadeTask[]>`
    WITH asked AS ${tasks.length === 1 ? inlined : once} (${asked(tasks)}), made AS (
      INSERT INTO tasks AS t (id, org_id, node_id, type, params, idempotent, timeout_seconds, priority, order_key,
        signature, expires_at, created_by, correlation_id, allocation_id, sealed_secrets, incident_id, status, generation,
        revision, lease_until, dispatched_at)
      SELECT a.id, n.org_id, n.id, a.type, a.params::json, a.idempotent, a.timeout_seconds, a.priority, a.order_key,
        a.signature, a.expires_at, a.created_by, a.correlation_id, a.allocation_id, a.sealed_secrets, ${openIncident}, c.*
      FROM asked a JOIN nodes n ON n.id = a.node_id CROSS JOIN LATERAL (
        SELECT ${claimedStatus}, 1, 2, ${newLease}, now()
        -- In the order of the node's own index, which the planner then prefers to that of all queued tasks.
        WHERE a.claim AND (SELECT true FROM tasks q WHERE q.node_id = n.id AND ${otherWaits}
          ORDER BY q.priority DESC, q.id LIMIT 1) IS NULL
        UNION ALL SELECT ${initialStatus}, 0, 1, NULL, NULL LIMIT 1
      ) AS c
      WHERE n.status = 'active' AND n.revoked_at IS NULL
        AND (a.capabilities = '{}' OR EXISTS (
          SELECT FROM node_presence p, json_array_elements_text(p.heartbeat #> '{facts,capabilities}') AS c (name)
          WHERE p.node_id = n.id AND c.name = ANY (a.capabilities)))
      RETURNING t.id, t.org_id, t.node_id, t.type, t.status, t.generation, t.revision, t.created_at, t.dispatched_at,
        t.incident_id
    ), audited AS (
      INSERT INTO audit_events (id, org_id, actor_type, actor_id, actor_name, role, action, target_type, target_id,
        target_name, result, correlation_id, incident_id, details)
      SELECT a.audit_id, m.org_id, a.actor_type, a.actor_id, a.created_by, a.role, 'task.create', 'task', m.id::text,
        m.type, 'allowed', a.correlation_id, m.incident_id, a.details::jsonb || jsonb_build_object('node_id', m.node_id)
      FROM made m JOIN asked a ON a.id = m.id
    )
    SELECT id, status, generation, revision, created_at, dispatched_at, incident_id FROM made`;
  const made = new Map(rows.map((row) => [row.id, row]));
  return tasks.flatMap((task) => {
    const row = made.get(task.id);
    return row ? [newRowOf(task, row)] : [];
  });
}

/** What the database decides about a new task; the rest is as it was sent. */
type MadeTask = Pick<TaskRow, "id" | "status" | "generation" | "revision" | "created_at" | "dispatched_at"> &
  Pick<TaskRow, "incident_id">;

function newRowOf(task: SignedNewTask, made: MadeTask): TaskRow {
  return {
    ...made,
    node_id: task.nodeId,
    type: task.type,
    priority: task.priority,
    params: task.params,
    created_by: task.by.actor_name,
    correlation_id: task.correlationId,
    expires_at: task.expiresAt,
    ...{ phase: null, progress: null, timings: {}, result: null, failure: null },
    ...{ cancel_requested_at: null, finished_at: null, replays: null },
  };
}

/** Whether PostgreSQL reads the asked rows where they are used, or keeps them in a table for the statement. */
const inlined = new ConstantSql("NOT MATERIALIZED");
const once = new ConstantSql("MATERIALIZED");
