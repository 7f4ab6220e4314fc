// Reads tasks, for producers and people. Runs confined to one organization, or as the system. Statements that change
// tasks are in transitions/.

import type { Task, TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import type { PhaseTimings, TaskFailure } from "@holdfast/contracts/node/protocol";
import { type Caller, callerSql, reaches } from "../allocations/access.ts";
import type { Queryable, Tx } from "../database/connect.ts";
import type { Revision } from "../mechanisms/awaiting.ts";

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
  incident_id: string | null;
  replays: string | null;
  created_at: Date;
  expires_at: Date;
  dispatched_at: Date | null;
  finished_at: Date | null;
};

/** The columns of a row `t`. */
export const taskColumns = (sql: Queryable) => sql`
  t.id, t.node_id, t.type, t.status, t.priority, t.params, t.phase, t.progress, t.timings, t.result, t.failure,
  t.generation, t.revision, t.cancel_requested_at, t.created_by, t.correlation_id, t.incident_id, t.replays, t.created_at,
  t.expires_at, t.dispatched_at, t.finished_at`;

export function toTask(row: TaskRow): Task {
  return {
    ...row,
    // The last phase reported no longer holds when the task has ended, or waits for another delivery.
    phase: row.status === "dispatched" ? row.phase : null,
    cancel_requested_at: row.cancel_requested_at?.toISOString() ?? null,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at.toISOString(),
    dispatched_at: row.dispatched_at?.toISOString() ?? null,
    finished_at: row.finished_at?.toISOString() ?? null,
  };
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
  const [row] = await tx<TaskRow[]>`SELECT ${taskColumns(tx)} FROM tasks t WHERE t.id = ${id}`;
  return row;
}

/** For a task `t`: whether it is for no allocation, or for one that the caller has access to. */
export const isSeenBy = (tx: Tx, caller: Caller) => tx`
  (t.allocation_id IS NULL OR EXISTS (
    SELECT FROM allocations a WHERE a.id = t.allocation_id AND ${reaches(tx, callerSql(tx, caller), "view")}))`;

/** Undefined also for the task of an allocation that the caller has no access to. */
export async function selectTaskFor(tx: Tx, caller: Caller, id: string): Promise<TaskRow | undefined> {
  const [row] = await tx<TaskRow[]>`
    SELECT ${taskColumns(tx)} FROM tasks t WHERE t.id = ${id} AND ${isSeenBy(tx, caller)}`;
  return row;
}

export async function selectTasks(
  tx: Tx,
  caller: Caller,
  page: {
    before: string;
    limit: number;
    nodeId?: string;
    status?: TaskStatus;
    type?: string;
    /** With automatic probes: whatever was done in its course. */
    incidentId?: string;
  },
): Promise<TaskRow[]> {
  return tx<TaskRow[]>`
    SELECT ${taskColumns(tx)} FROM tasks t
    WHERE t.id < ${page.before} AND ${isSeenBy(tx, caller)}
      ${page.nodeId === undefined ? tx`` : tx`AND t.node_id::text = ${page.nodeId}`}
      ${page.status === undefined ? tx`` : tx`AND t.status = ${page.status}`}
      ${page.incidentId === undefined ? tx`` : tx`AND t.incident_id = ${page.incidentId}`}
      ${page.type === undefined ? tx`` : tx`AND t.type = ${page.type}`}
      ${page.type === undefined && page.incidentId === undefined ? tx`AND NOT t.routine` : tx``}
    ORDER BY t.id DESC LIMIT ${page.limit + 1}`;
}

/** Reads all tasks that are awaited in this process, in one statement. */
export async function selectRevisions(sql: Queryable, ids: readonly string[]): Promise<Revision[]> {
  return sql<Revision[]>`
    SELECT id, revision, finished_at IS NOT NULL AS ended FROM tasks WHERE id = ANY (${[...ids]}::uuid[])`;
}
