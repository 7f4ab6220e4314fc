// Takes everything from an agent whose token is no longer accepted: nothing that it reports will be. What was not sent to it
// waits for another agent; of the rest nobody will ever know more.

import type { ExecutionState } from "@holdfast/contracts/endpoints/executions";
import type { Tx } from "../../database/connect.ts";
import { targetOf } from "../../mechanisms/transition-sql.ts";
import { byEvent, errorText, isInFlight, withoutAgent } from "./sql.ts";
import { type ExecutionEvent, INITIAL_STATUS } from "./table.ts";

const inFlight = isInFlight();
const events: ExecutionEvent[] = ["revoke", "revoke_unsent"];
const newStatus = byEvent({ event: "v.event", status: "e.status" }, events, targetOf);
const disconnected = errorText("AGENT_DISCONNECTED");

export type Taken = { id: string; status: ExecutionState };

/** The caller has locked the agent, and sets its count to 0. */
export async function takeFromAgent(tx: Tx, agentId: string): Promise<Taken[]> {
  return tx<Taken[]>`
    WITH locked AS MATERIALIZED (
      SELECT e.id, ${newStatus} AS new_status FROM executions e CROSS JOIN LATERAL (
        SELECT CASE WHEN e.session_id IS NULL THEN 'revoke_unsent' ELSE 'revoke' END AS event) AS v
      WHERE ${inFlight} AND e.agent_id = ${agentId} ORDER BY e.id FOR NO KEY UPDATE OF e
    ), waiting AS (
      UPDATE executions e SET status = l.new_status, ${withoutAgent}, revision = e.revision + 1,
        wait_until = greatest(e.wait_until, now())
      FROM locked l WHERE e.id = l.id AND l.new_status = ${INITIAL_STATUS}
      RETURNING e.id, e.status
    ), ended AS (
      UPDATE executions e SET status = l.new_status, error = ${disconnected}, finished_at = now(), lease_until = NULL,
        sealed_secret = NULL, revision = e.revision + 1
      FROM locked l WHERE e.id = l.id AND l.new_status <> ${INITIAL_STATUS}
      RETURNING e.id, e.status
    )
    SELECT id, status FROM waiting UNION ALL SELECT id, status FROM ended`;
}
