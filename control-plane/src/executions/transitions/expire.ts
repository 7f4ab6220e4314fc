// Ends requests by the clock: those that no agent took in time, and those whose agent reported no result before the
// deadline. Rows that another statement has locked are in use, and are left for the next run.

import type { ExecutionState } from "@holdfast/contracts/endpoints/executions";
import type { Queryable, Sql } from "../../database/connect.ts";
import { ConstantSql } from "../../database/connect.ts";
import { targetOf } from "../../mechanisms/transition-sql.ts";
import { countReleased } from "./room.ts";
import { byEvent, errorText, isInFlight, isWaiting, statusAfter } from "./sql.ts";
import type { ExecutionEvent } from "./table.ts";

export type Expired = {
  id: string;
  org_id: string;
  agent_id: string | null;
  status: ExecutionState;
  error: string;
};

const waits = isWaiting();
const statusWithoutAgent = statusAfter("wait_over");
const noAgent = errorText("NO_AGENT_AVAILABLE");

/** At most as many as `limit`; with `ids`, only these, and also if their time is not over. */
export async function endWaits(
  sql: Queryable,
  options: { limit: number; ids?: readonly string[] },
): Promise<Expired[]> {
  const due = options.ids ? sql`e.id = ANY (${[...options.ids]}::uuid[])` : sql`e.wait_until <= now()`;
  return sql<Expired[]>`
    WITH due AS MATERIALIZED (
      SELECT e.id FROM executions e WHERE ${waits} AND ${due} LIMIT ${options.limit} FOR NO KEY UPDATE SKIP LOCKED)
    UPDATE executions e SET status = ${statusWithoutAgent}, finished_at = now(), error = ${noAgent}, sealed_secret = NULL,
      revision = e.revision + 1
    FROM due WHERE e.id = due.id
    RETURNING e.id, e.org_id, e.agent_id, e.status, e.error`;
}

const events: ExecutionEvent[] = ["deadline", "deadline_cancelled"];
const inFlight = isInFlight();
const newStatus = byEvent({ event: "v.event", status: "d.old_status" }, events, targetOf);
/** What is said about a request whose journal is not the one that is connected. */
const OTHER_JOURNAL =
  "The request was sent to this agent while it had another journal, which has not reported a result. The connected one was " +
  "not given it, because it cannot know whether the step ran: its state directory was replaced, or a second host uses its " +
  "credentials.";
const error = new ConstantSql(`CASE WHEN d.to_cancel THEN ${errorText("EXECUTION_CANCELLED").text}
  WHEN d.connected THEN ${errorText("NODE_EXECUTION_TIMEOUT").text} ELSE ${errorText("AGENT_DISCONNECTED").text} END`);

/** `sessionSeconds`: without a touch for so long, a session counts as closed. Locks the agents before the requests. */
export async function endOverdue(
  system: Sql,
  options: { limit: number; sessionSeconds: number },
): Promise<Expired[]> {
  return system<Expired[]>`
    WITH found AS MATERIALIZED (
      SELECT e.id, e.agent_id FROM executions e WHERE ${inFlight} AND e.deadline_at <= now()
      ORDER BY e.deadline_at LIMIT ${options.limit}
    ), agents AS MATERIALIZED (
      SELECT g.id, g.journal_id,
        coalesce(g.session_seen_at > now() - ${options.sessionSeconds} * interval '1 second', false) AS connected
      FROM execution_agents g WHERE g.id IN (SELECT agent_id FROM found) ORDER BY g.id FOR NO KEY UPDATE
    ), due AS MATERIALIZED (
      SELECT e.id, e.agent_id, e.status AS old_status, e.cancel_requested_at IS NOT NULL AS to_cancel,
        a.connected AND o.other_journal AS other_journal, a.connected AND NOT o.other_journal AS connected
      FROM found f JOIN executions e ON e.id = f.id JOIN agents a ON a.id = e.agent_id CROSS JOIN LATERAL (
        SELECT e.session_id IS NOT NULL AND e.journal_id IS DISTINCT FROM a.journal_id AS other_journal) AS o
      WHERE ${inFlight} AND e.deadline_at <= now() AND (SELECT count(*) FROM agents) > 0
      ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED
    ), released AS (
      UPDATE executions e SET status = ${newStatus}, error = ${error}, finished_at = now(), lease_until = NULL,
        output = CASE WHEN d.other_journal THEN json_build_object('message', ${OTHER_JOURNAL}::text) END, sealed_secret = NULL, revision = e.revision + 1
      FROM due d CROSS JOIN LATERAL (
        SELECT CASE WHEN d.to_cancel THEN 'deadline_cancelled' ELSE 'deadline' END AS event) AS v
      WHERE e.id = d.id
      RETURNING e.id, e.org_id, e.agent_id, e.status, e.error
    ), counted AS (${countReleased})
    SELECT id, org_id, agent_id, status, error FROM released`;
}
