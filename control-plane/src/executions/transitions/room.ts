// The check of a choice, as a part of the statements that give requests to agents.

import { ConstantSql, type Fragment, type Queryable } from "../../database/connect.ts";

/**
 * The chosen agents that can still take requests, with their room, locked in the order of their ids until the counts are
 * written. `sessionSeconds`: without a touch for so long, a session counts as closed.
 */
export function roomOfAgents(
  sql: Queryable,
  agentIds: readonly string[],
  { sessionSeconds }: { sessionSeconds: number },
): Fragment {
  return sql`
    SELECT g.id, g.session_id, g.journal_id, g.max_in_flight - g.in_flight AS room FROM execution_agents g
    WHERE g.id = ANY (${[...new Set(agentIds)]}::uuid[]) AND g.revoked_at IS NULL AND NOT g.draining
      AND g.session_id IS NOT NULL AND g.session_seen_at > now() - ${sessionSeconds} * interval '1 second'
    ORDER BY g.id FOR NO KEY UPDATE`;
}

/** Counts what the rows `given` (with agent_id) have been given to the agents. */
export const countGiven = new ConstantSql(`
  UPDATE execution_agents g SET in_flight = g.in_flight + n.given, last_dispatched_at = now()
  FROM (SELECT m.agent_id, count(*)::integer AS given FROM given m WHERE m.agent_id IS NOT NULL GROUP BY m.agent_id) AS n
  WHERE g.id = n.agent_id`);

/** Counts what the rows `released` (with agent_id) have taken from the agents. A count that is wrong keeps no result out. */
export const countReleased = new ConstantSql(`
  UPDATE execution_agents g SET in_flight = greatest(0, g.in_flight - n.released)
  FROM (SELECT m.agent_id, count(*)::integer AS released FROM released m WHERE m.agent_id IS NOT NULL GROUP BY m.agent_id) AS n
  WHERE g.id = n.agent_id`);

/** These agents, locked in the order of their ids, before the executions that they have. */
export function lockAgents(sql: Queryable, agentIds: readonly string[]): Fragment {
  return sql`
    SELECT g.id FROM execution_agents g WHERE g.id = ANY (${[...new Set(agentIds)]}::uuid[])
    ORDER BY g.id FOR NO KEY UPDATE`;
}
