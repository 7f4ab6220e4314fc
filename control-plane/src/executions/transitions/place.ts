// Gives waiting requests to agents that were chosen for them.
//
// Locks: the chosen agents, in the order of their ids; then the requests, of which it leaves out those that another
// statement has locked: they are placed or ended there.

import { type Queryable, rowsOf } from "../../database/connect.ts";
import { countGiven, roomOfAgents } from "./room.ts";
import { isWaiting, statusAfter } from "./sql.ts";

export type Placement = {
  id: string;
  agentId: string;
  sessionId: string;
  signature: string | null;
  deadlineAt: Date;
};

export type Placed = { id: string; agent_id: string; deadline_at: Date };

const chosen = rowsOf<Placement>({
  id: ["uuid", (one) => one.id],
  chosen_id: ["uuid", (one) => one.agentId],
  chosen_session: ["uuid", (one) => one.sessionId],
  signature: ["text", (one) => one.signature],
  deadline_at: ["timestamptz", (one) => one.deadlineAt],
});

const waits = isWaiting();
const newStatus = statusAfter("assign");

/** Those that are not among the rows still wait: the agent had no room any more, or the request has changed. */
export async function placeRequests(
  sql: Queryable,
  placements: readonly Placement[],
  options: { sessionSeconds: number },
): Promise<Placed[]> {
  return sql<Placed[]>`
    WITH chosen AS MATERIALIZED (${chosen(placements)}),
    room AS MATERIALIZED (${roomOfAgents(
      sql,
      placements.map(({ agentId }) => agentId),
      options,
    )}),
    waiting AS MATERIALIZED (
      SELECT e.id, c.chosen_id, c.signature, c.deadline_at, r.room
      FROM chosen c JOIN executions e ON e.id = c.id JOIN room r ON r.id = c.chosen_id AND r.session_id = c.chosen_session
      WHERE ${waits} AND (SELECT count(*) FROM room) > 0
      ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED
    ), placed AS MATERIALIZED (
      SELECT w.*, row_number() OVER (PARTITION BY w.chosen_id ORDER BY w.id) AS place FROM waiting w
    ), given AS (
      UPDATE executions e SET status = ${newStatus}, revision = e.revision + 1, generation = e.generation + 1,
        agent_id = p.chosen_id, signature = p.signature, deadline_at = p.deadline_at, dispatched_at = now()
      FROM placed p WHERE e.id = p.id AND p.place <= p.room
      RETURNING e.id, e.agent_id, e.deadline_at
    ), counted AS (${countGiven})
    SELECT id, agent_id, deadline_at FROM given`;
}
