// Whether a terminal may still be used. Derived from stored rows for all live terminals, so code that releases, revokes or
// removes something need not know about terminals.

import { type CallerSql, reaches } from "../allocations/access.ts";
import type { Queryable, Sql } from "../database/connect.ts";
import { isBacked } from "../tokens/standing.ts";
import { terminalIsLive } from "./state.ts";

/** For a terminal session `s` or its token `k`: whether the browser session that requested it was ended, not merely expired. */
export const signInEnded = (sql: Queryable, of: "s" | "k") => sql`
  EXISTS (SELECT FROM sessions x WHERE x.ended_at IS NOT NULL AND
          x.id = ${of === "s" ? sql`s.sign_in_id` : sql`k.sign_in_id`})`;

/**
 * For a session `s`: the reason code for which it may no longer be used, or null. Reasons of the node or the allocation come
 * before reasons of the person, because they apply to everybody.
 */
export const lostAccessCode = (sql: Queryable) => sql`(
  SELECT CASE
    WHEN n.status = 'retired' THEN 'terminal_node_retired'
    WHEN n.revoked_at IS NOT NULL THEN 'terminal_node_revoked'
    WHEN n.status = 'quarantined' THEN 'terminal_node_quarantined'
    WHEN a.status IN ('releasing', 'released') THEN 'terminal_allocation_released'
    WHEN l.status IN ('terminated', 'failed', 'orphaned') THEN 'terminal_vm_ended'
    WHEN ${signInEnded(sql, "s")} THEN 'terminal_signed_out'
    WHEN s.actor_type = 'token' AND NOT EXISTS (SELECT FROM (${opener(sql)}) AS o) THEN 'terminal_api_token_ended'
    WHEN s.lease_id IS NOT NULL THEN CASE
      WHEN NOT EXISTS (SELECT FROM (${opener(sql)}) AS o WHERE o.writes_leases) THEN 'terminal_access_ended' END
    WHEN a.status <> 'active' OR NOT EXISTS (
      SELECT FROM (${opener(sql)}) AS o
      WHERE (o.administers OR NOT a.own_account) AND ${reaches(sql, openerSql(sql), "use")}) THEN 'terminal_access_ended'
    END
  FROM nodes n LEFT JOIN allocations a ON a.id = s.allocation_id LEFT JOIN vm_leases l ON l.id = s.lease_id
  WHERE n.id = s.node_id)`;

export const accessIsLost = (sql: Queryable) => sql`(${lostAccessCode(sql)} IS NOT NULL)`;

const openerSql = (sql: Queryable): CallerSql => ({
  userId: sql`o.user_id`,
  tokenId: sql`o.token_id`,
  administers: sql`o.administers`,
});

/** Who opened the session `s`, as `callerOf` would return them now. No row: they may no longer act in the organization. */
const opener = (sql: Queryable) => sql`
  SELECT u.id AS user_id, NULL::uuid AS token_id,
    CASE WHEN m.role IS NULL THEN u.operator ELSE m.role <> 'member' END AS administers,
    CASE WHEN m.role IS NULL THEN u.operator ELSE m.role <> 'member' END AS writes_leases
  FROM users u LEFT JOIN memberships m ON m.user_id = u.id AND m.org_id = s.org_id
  WHERE s.actor_type = 'user' AND u.id = s.actor_id AND (u.operator OR m.user_id IS NOT NULL)
  UNION ALL
  SELECT t.created_by, CASE WHEN t.created_by IS NULL THEN t.id END,
    t.role <> 'member' AND (t.scopes IS NULL OR 'allocations:admin' = ANY (t.scopes)),
    t.role <> 'member' AND (t.scopes IS NULL OR 'leases:write' = ANY (t.scopes))
  FROM api_tokens t
  WHERE s.actor_type = 'token' AND t.id = s.actor_id AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > now())
    AND ${isBacked(sql, "api_token")}
  UNION ALL
  SELECT NULL, NULL, true, true WHERE s.actor_type = 'local_operator'`;

/** Requests that these terminals close, and returns their ids. Rows locked by others are left for the next run. */
export async function endLostAccess(system: Sql): Promise<string[]> {
  const rows = await system<{ id: string }[]>`
    WITH lost AS MATERIALIZED (
      SELECT s.id, lost.code FROM terminal_sessions s CROSS JOIN LATERAL (SELECT ${lostAccessCode(system)} AS code) AS lost
      WHERE ${terminalIsLive("s")} AND s.close_code IS NULL AND lost.code IS NOT NULL
      ORDER BY s.id LIMIT 1000 FOR NO KEY UPDATE OF s SKIP LOCKED)
    UPDATE terminal_sessions s SET close_code = lost.code, close_asked_at = now()
    FROM lost WHERE s.id = lost.id RETURNING s.id`;
  return rows.map(({ id }) => id);
}
