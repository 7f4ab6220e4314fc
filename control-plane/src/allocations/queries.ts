// SQL of allocations. Statuses come from state.ts; every change of a row increments its revision.

import type {
  Allocation,
  AllocationAccess,
  AllocationRemoval,
  AllocationStatus,
  GrantLevel,
} from "@holdfast/contracts/endpoints/allocations";
import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import type { NodeStatus, TaskFailure } from "@holdfast/contracts/node/protocol";
import type { UserState } from "@holdfast/contracts/reasons/vocabulary";
import { userStateTitles } from "@holdfast/contracts/words/state-titles";
import type { AuditActor } from "../audit/record.ts";
import type { Queryable, Tx } from "../database/connect.ts";
import type { Revision } from "../mechanisms/awaiting.ts";
import { type Caller, callerSql, type Grant, type Owner, reaches } from "./access.ts";
import { isInProgress } from "./state.ts";

export type AllocationRow = Owner & {
  id: string;
  org_id: string;
  project_id: string;
  node_id: string;
  node_name: string;
  username: string;
  ssh_keys: string[];
  status: AllocationStatus;
  reason: TaskFailure | null;
  revision: number;
  task_id: string | null;
  own_account: boolean;
  home: string | null;
  created_by: string;
  owner_name: string | null;
  /** Who requested the change under way. */
  actor_type: AuditActor["actor_type"];
  actor_id: string | null;
  actor_name: string;
  role: string;
  created_at: Date;
  active_at: Date | null;
  released_at: Date | null;
  removal: AllocationRemoval | null;
  /** Written by drift/tenants/. */
  user_state: UserState;
  user_state_since: Date | null;
};

/** With the columns that decide the caller's access. */
export type SeenRow = AllocationRow & {
  owner_active: boolean;
  grant_level: GrantLevel | null;
  grant_expires_at: Date | null;
  /** By the database's clock. */
  read_at: Date;
};

export function grantOf({ grant_level: level, grant_expires_at: expires_at }: SeenRow): Grant | null {
  return level === null || expires_at === null ? null : { level, expires_at };
}

export function toAllocation(row: SeenRow, access: AllocationAccess): Allocation {
  return {
    id: row.id,
    owner: toOwner(row),
    access,
    access_until: access === "manage" ? null : (row.grant_expires_at?.toISOString() ?? null),
    project_id: row.project_id,
    node_id: row.node_id,
    node_name: row.node_name,
    username: row.username,
    status: row.status,
    user_state: toUserState(row),
    reason: row.reason,
    task_id: row.task_id,
    own_account: row.own_account,
    home: row.home,
    created_by: row.created_by,
    created_at: row.created_at.toISOString(),
    active_at: row.active_at?.toISOString() ?? null,
    released_at: row.released_at?.toISOString() ?? null,
    removal: row.removal,
    revision: row.revision,
  };
}

/** Of one that ended, the node behind it says nothing any more. */
function toUserState({
  status,
  user_state: state,
  user_state_since,
  created_at,
}: SeenRow): Allocation["user_state"] {
  if (status === "released" || status === "failed") return null;
  const { title, meaning: message } = userStateTitles[state];
  return { state, title, message, since: (user_state_since ?? created_at).toISOString() };
}

function toOwner({ owner_user_id, owner_token_id, owner_name, owner_active }: SeenRow): Allocation["owner"] {
  const id = owner_user_id ?? owner_token_id;
  if (id === null || owner_name === null) return null;
  return { type: owner_token_id === null ? "user" : "token", id, name: owner_name, active: owner_active };
}

const columns = (db: Queryable) => db`
  a.id, a.org_id, a.project_id, a.node_id, n.name AS node_name, a.username, a.ssh_keys, a.status, a.reason,
  a.revision, a.task_id, a.own_account, a.home, a.created_by, a.owner_user_id, a.owner_token_id, a.owner_name,
  a.actor_type, a.actor_id, a.actor_name, a.role, a.created_at, a.active_at, a.released_at,
  a.removal, a.user_state, a.user_state_since`;

const ownerIsActive = (db: Queryable) => db`(
  EXISTS (SELECT FROM memberships m WHERE m.org_id = a.org_id AND m.user_id = a.owner_user_id)
  OR EXISTS (SELECT FROM api_tokens t WHERE t.id = a.owner_token_id AND t.revoked_at IS NULL
             AND (t.expires_at IS NULL OR t.expires_at > now())))`;

const seenColumns = (db: Queryable) => db`
  ${columns(db)}, ${ownerIsActive(db)} AS owner_active, own.level AS grant_level,
  own.expires_at AS grant_expires_at, now() AS read_at`;

/** With the caller's own grant. */
const seenBy = (db: Queryable, { userId }: Caller) => db`
  allocations a JOIN nodes n ON n.id = a.node_id
  LEFT JOIN allocation_grants own ON own.allocation_id = a.id AND own.grantee_id = ${userId}::uuid`;

export type Host = {
  id: string;
  name: string;
  status: NodeStatus;
  revoked_at: Date | null;
  /** Null before the node's first heartbeat. */
  capabilities: string[] | null;
  account: string | null;
};

/** The node with the capabilities of its last heartbeat. */
export async function selectHost(tx: Tx, nodeId: string): Promise<Host | undefined> {
  const [row] = await tx<Host[]>`
    SELECT n.id, n.name, n.status, n.revoked_at,
      p.heartbeat #> '{facts,capabilities}' AS capabilities, p.heartbeat #>> '{facts,account}' AS account
    FROM nodes n LEFT JOIN node_presence p ON p.node_id = n.id
    WHERE n.id = ${nodeId}`;
  return row;
}

/** The requested project; by default the oldest one. */
export async function selectProjectId(tx: Tx, wanted: string | undefined): Promise<string | undefined> {
  const [row] = await tx<{ id: string }[]>`
    SELECT id FROM projects ${wanted === undefined ? tx`` : tx`WHERE id = ${wanted}`} ORDER BY id LIMIT 1`;
  return row?.id;
}

export type NewAllocation = Pick<
  AllocationRow,
  | "id"
  | "org_id"
  | "project_id"
  | "node_id"
  | "username"
  | "ssh_keys"
  | "task_id"
  | "created_by"
  | "owner_user_id"
  | "owner_token_id"
  | "owner_name"
> &
  AuditActor;

/** False when the user belongs to another allocation. Waits for a concurrent insert of the same user. */
export async function insertAllocation(tx: Tx, row: NewAllocation): Promise<boolean> {
  const inserted = await tx`
    INSERT INTO allocations (id, org_id, project_id, node_id, username, ssh_keys, task_id, created_by, owner_user_id,
      owner_token_id, owner_name, actor_type, actor_id, actor_name, role)
    VALUES (${row.id}, ${row.org_id}, ${row.project_id}, ${row.node_id}, ${row.username}, ${row.ssh_keys},
      ${row.task_id}, ${row.created_by}, ${row.owner_user_id}, ${row.owner_token_id}, ${row.owner_name},
      ${row.actor_type}, ${row.actor_id}, ${row.actor_name}, ${row.role})
    ON CONFLICT (node_id, username) WHERE status <> 'released' DO NOTHING`;
  return inserted.count === 1;
}

/** Undefined also for one that the caller has no access to. */
export async function selectLiveAllocation(
  tx: Tx,
  caller: Caller,
  user: Pick<AllocationRow, "node_id" | "username">,
) {
  const [row] = await tx<{ id: string; status: AllocationStatus }[]>`
    SELECT a.id, a.status FROM allocations a
    WHERE a.node_id = ${user.node_id} AND a.username = ${user.username} AND a.status <> 'released'
      AND ${reaches(tx, callerSql(tx, caller), "view")}`;
  return row;
}

/** Of any owner: `readAllocation` decides whether the caller may see it. */
export async function selectAllocation(tx: Tx, id: string, caller: Caller): Promise<SeenRow | undefined> {
  const [row] = await tx<SeenRow[]>`SELECT ${seenColumns(tx)} FROM ${seenBy(tx, caller)} WHERE a.id = ${id}`;
  return row;
}

export type AllocationFilter = {
  nodeId?: string;
  projectId?: string;
  status?: AllocationStatus;
  /** The filter by owner: a member's id, the caller, or owners who are not active. */
  owner?: string | "me" | "none";
};

export async function selectAllocations(
  tx: Tx,
  caller: Caller,
  filter: AllocationFilter,
  page: { before: string; limit: number },
): Promise<SeenRow[]> {
  return tx<SeenRow[]>`
    SELECT ${seenColumns(tx)} FROM ${seenBy(tx, caller)}
    WHERE a.id < ${page.before} AND ${reaches(tx, callerSql(tx, caller), "view")}
      ${filter.nodeId === undefined ? tx`` : tx`AND a.node_id = ${filter.nodeId}`}
      ${filter.projectId === undefined ? tx`` : tx`AND a.project_id = ${filter.projectId}`}
      ${filter.status === undefined ? tx`` : tx`AND a.status = ${filter.status}`}
      ${filter.owner === undefined ? tx`` : tx`AND ${ownedBy(tx, caller, filter.owner)}`}
    ORDER BY a.id DESC LIMIT ${page.limit + 1}`;
}

function ownedBy(tx: Tx, { userId, tokenId }: Caller, owner: string) {
  if (owner === "none") return tx`NOT ${ownerIsActive(tx)}`;
  if (owner === "me") return tx`(a.owner_user_id = ${userId}::uuid OR a.owner_token_id = ${tokenId}::uuid)`;
  return tx`a.owner_user_id = ${owner}`;
}

export type MovingRow = AllocationRow & { node_status: NodeStatus };

/** Locked until the transaction ends: the reconciler leaves it alone meanwhile. */
export async function lockAllocation(
  tx: Tx,
  id: string,
  caller: Caller,
): Promise<(SeenRow & MovingRow) | undefined> {
  const [row] = await tx<(SeenRow & MovingRow)[]>`
    SELECT ${seenColumns(tx)}, n.status AS node_status FROM ${seenBy(tx, caller)}
    WHERE a.id = ${id} FOR UPDATE OF a`;
  return row;
}

export type EndedRow = MovingRow & {
  /** Null when the task is no longer kept. */
  task_status: TaskStatus | null;
  task_result: unknown;
  task_failure: TaskFailure | null;
};

/**
 * Locks one allocation that is due: its task has ended, or its node was retired. One without a task waits for its node to
 * take work again. Rows locked by another replica are skipped, so several replicas process different ones.
 *
 * The locked row is read again: if another replica changed it between our snapshot and our lock, PostgreSQL compares the
 * new row with the old task, and a task that has just been replaced would appear as missing.
 */
export async function lockNextMovable(tx: Tx, but: readonly string[]): Promise<EndedRow | undefined> {
  const tried = [...but];
  for (;;) {
    const [locked] = await tx<{ id: string }[]>`
      SELECT a.id ${movable(tx)} AND a.id <> ALL(${tried}::uuid[])
      ORDER BY a.id LIMIT 1 FOR UPDATE OF a SKIP LOCKED`;
    if (!locked) return undefined;
    const [row] = await tx<EndedRow[]>`
      SELECT ${columns(tx)}, n.status AS node_status,
        t.status AS task_status, t.result AS task_result, t.failure AS task_failure
      ${movable(tx)} AND a.id = ${locked.id}`;
    if (row) return row;
    tried.push(locked.id);
  }
}

const movable = (tx: Tx) => tx`
  FROM allocations a JOIN nodes n ON n.id = a.node_id LEFT JOIN tasks t ON t.id = a.task_id
  WHERE ${isInProgress}
    AND (t.finished_at IS NOT NULL OR n.status = 'retired' OR (a.task_id IS NOT NULL AND t.id IS NULL)
      OR (a.task_id IS NULL AND n.status = 'active' AND n.revoked_at IS NULL))`;

export type Change = { status: AllocationStatus; reason: TaskFailure | null; taskId: string | null };

/** The transaction must have locked the row. */
export async function changeAllocation(tx: Tx, id: string, change: Change): Promise<void> {
  await tx`
    UPDATE allocations SET status = ${change.status}, task_id = ${change.taskId}, revision = revision + 1,
      reason = ${change.reason === null ? null : tx.json(change.reason)},
      released_at = ${change.status === "released" ? tx`now()` : null}
    WHERE id = ${id}`;
}

/** Stores who requested the release; the reconciler continues it on their behalf. */
export async function recordRequester(tx: Tx, id: string, by: AuditActor): Promise<void> {
  await tx`
    UPDATE allocations SET actor_type = ${by.actor_type}, actor_id = ${by.actor_id}, actor_name = ${by.actor_name},
      role = ${by.role}
    WHERE id = ${id}`;
}

export async function changeOwner(tx: Tx, id: string, owner: { userId: string; name: string }): Promise<void> {
  await tx`
    UPDATE allocations SET owner_user_id = ${owner.userId}, owner_token_id = NULL, owner_name = ${owner.name},
      revision = revision + 1
    WHERE id = ${id}`;
}

export async function recordUser(tx: Tx, id: string, user: { home: string; own_account: boolean }): Promise<void> {
  await tx`
    UPDATE allocations SET home = ${user.home}, own_account = ${user.own_account}, active_at = now()
    WHERE id = ${id}`;
}

/** The row must be released. */
export async function recordRemoval(tx: Tx, id: string, removal: AllocationRemoval): Promise<void> {
  await tx`UPDATE allocations SET removal = ${removal} WHERE id = ${id}`;
}

/** Reads all allocations that are awaited in this process, in one statement. */
export async function selectRevisions(sql: Queryable, ids: readonly string[]): Promise<Revision[]> {
  return sql<Revision[]>`
    SELECT id, revision, status = 'released' AS ended FROM allocations WHERE id = ANY (${[...ids]}::uuid[])`;
}
