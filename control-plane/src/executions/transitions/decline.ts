// An agent says that it did not start a request and never will: it waits for another agent. What it says by another connection
// than the one that the request was sent by last is too late: it has the request again, and may run it.
//
// Locks: the agents, in the order of their ids; then waits for the requests, in the order of theirs.

import type { ExecutionState } from "@holdfast/contracts/endpoints/executions";
import { type Queryable, rowsOf } from "../../database/connect.ts";
import { targetOf } from "../../mechanisms/transition-sql.ts";
import { countReleased, lockAgents } from "./room.ts";
import { byEvent, errorText, isCurrent, isKnownTo, withoutAgent } from "./sql.ts";
import { type ExecutionEvent, INITIAL_STATUS } from "./table.ts";

export type DeclinedRequest = {
  requestId: string;
  agentId: string;
  sessionId: string;
  generation: number;
  reason: string;
};

export type DeclineVerdict = {
  request_id: string;
  agent_id: string;
  generation: number;
  id: string;
  org_id: string;
  /** Null: it was not with this agent as this delivery, or has ended. */
  status: ExecutionState | null;
  asked_by: string;
  asked_elsewhere: boolean;
};

const declined = rowsOf<DeclinedRequest>({
  request_id: ["text", (one) => one.requestId],
  agent_id: ["uuid", (one) => one.agentId],
  session_id: ["uuid", (one) => one.sessionId],
  generation: ["integer", (one) => one.generation],
  reason: ["text", (one) => one.reason],
});

const events: ExecutionEvent[] = ["decline", "decline_cancelled"];
const known = isKnownTo("e", "r");
const current = isCurrent("e", "r");
const newStatus = byEvent({ event: "v.event", status: "l.old_status" }, events, targetOf);
const stepFailed = errorText("NODE_EXECUTION_FAILED");
const wasCancelled = errorText("EXECUTION_CANCELLED");

export async function declineRequests(
  sql: Queryable,
  reports: readonly DeclinedRequest[],
): Promise<DeclineVerdict[]> {
  const agents = lockAgents(
    sql,
    reports.map(({ agentId }) => agentId),
  );
  return sql<DeclineVerdict[]>`
    WITH agents AS MATERIALIZED (${agents}), locked AS MATERIALIZED (
      SELECT e.id, e.org_id, e.status AS old_status, e.asked_by, e.asked_elsewhere, r.*,
        e.cancel_requested_at IS NOT NULL AS to_cancel, ${current} AND e.session_id IS NOT DISTINCT FROM r.session_id AS current
      FROM (${declined(reports)}) AS r JOIN executions e ON e.request_id = r.request_id AND ${known}
      WHERE (SELECT count(*) FROM agents) > 0
      ORDER BY e.id FOR NO KEY UPDATE OF e
    ), judged AS MATERIALIZED (
      SELECT l.*, ${newStatus} AS new_status FROM locked l CROSS JOIN LATERAL (SELECT CASE
        WHEN NOT l.current THEN 'decline_stale' WHEN l.to_cancel THEN 'decline_cancelled' ELSE 'decline' END AS event) AS v
    ), waiting AS (
      UPDATE executions e SET status = j.new_status, ${withoutAgent}, revision = e.revision + 1,
        declined_by = e.declined_by || j.agent_id, wait_until = greatest(e.wait_until, now())
      FROM judged j WHERE e.id = j.id AND j.new_status = ${INITIAL_STATUS}
    ), ended AS (
      UPDATE executions e SET status = j.new_status, revision = e.revision + 1, lease_until = NULL, sealed_secret = NULL,
        finished_at = now(),
        output = CASE WHEN NOT j.to_cancel THEN json_build_object('message', 'The agent declined it: ' || j.reason) END,
        error = CASE WHEN j.to_cancel THEN ${wasCancelled} ELSE ${stepFailed} END
      FROM judged j WHERE e.id = j.id AND j.new_status <> ${INITIAL_STATUS}
    ), released AS (
      SELECT j.agent_id FROM judged j WHERE j.new_status IS NOT NULL
    ), counted AS (${countReleased})
    SELECT request_id, agent_id, generation, id, org_id, new_status AS status, asked_by, asked_elsewhere FROM judged`;
}
