// Whether a terminal may still be used: a question to what is stored, asked of all that are there. So
// nobody who releases, revokes or removes something has to think of terminals.

import type { Queryable, Sql } from "../database/connect.ts";

/**
 * Of a session `s`: the allocation was given back, the node is fenced or revoked, or whoever opened it has
 * left, lost the token, or is no operator any more.
 */
export const accessIsLost = (sql: Queryable) => sql`(
  NOT EXISTS (SELECT FROM allocations a WHERE a.id = s.allocation_id AND a.status = 'active')
  OR EXISTS (SELECT FROM nodes n WHERE n.id = s.node_id
             AND (n.revoked_at IS NOT NULL OR n.status IN ('quarantined', 'retired')))
  OR (s.actor_type = 'user' AND NOT EXISTS (
        SELECT FROM users u LEFT JOIN memberships m ON m.user_id = u.id AND m.org_id = s.org_id
        WHERE u.id = s.actor_id AND (u.operator OR m.user_id IS NOT NULL)))
  OR (s.actor_type = 'token' AND NOT EXISTS (
        SELECT FROM api_tokens t LEFT JOIN users u ON u.id = t.created_by
          LEFT JOIN memberships m ON m.user_id = t.created_by AND m.org_id = t.org_id
        WHERE t.id = s.actor_id AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
          AND (t.created_by IS NULL OR u.operator OR m.user_id IS NOT NULL))))`;

/** Asks those to close, and answers with their ids. What somebody else has locked is left for the next turn. */
export async function endLostAccess(system: Sql): Promise<string[]> {
  const rows = await system<{ id: string }[]>`
    WITH lost AS MATERIALIZED (
      SELECT s.id FROM terminal_sessions s
      WHERE s.state IN ('opening', 'open') AND s.close_code IS NULL AND ${accessIsLost(system)}
      ORDER BY s.id LIMIT 1000 FOR NO KEY UPDATE OF s SKIP LOCKED)
    UPDATE terminal_sessions s SET close_code = 'terminal_access_ended', close_asked_at = now()
    FROM lost WHERE s.id = lost.id RETURNING s.id`;
  return rows.map(({ id }) => id);
}
