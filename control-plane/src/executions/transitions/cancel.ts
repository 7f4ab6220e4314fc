// Cancels a request: at once while no agent can have it; otherwise its agent is requested to stop, and its result or the
// deadline ends the request.
//
// Locks: the agent, then waits for a statement under way with the request.

import type { ExecutionState } from "@holdfast/contracts/endpoints/executions";
import type { Tx } from "../../database/connect.ts";
import { targetOf } from "../../mechanisms/transition-sql.ts";
import { countReleased } from "./room.ts";
import { byEvent, errorText, isInFlight } from "./sql.ts";
import type { ExecutionEvent } from "./table.ts";

export type Cancelled = { id: string; status: ExecutionState; agent_id: string | null; ended: boolean };

const events: ExecutionEvent[] = ["cancel", "cancel_unsent"];
const columns = { event: "v.event", status: "l.status" };
const newStatus = byEvent(columns, events, targetOf);
const outcome = byEvent(columns, events, (one) => (typeof one === "object" ? "ends" : one));
const inFlight = isInFlight("l");
const wasCancelled = errorText("EXECUTION_CANCELLED");

/** Undefined: there is no such request, or it has ended. A second cancel changes nothing. */
export async function cancelRequest(tx: Tx, id: string): Promise<Cancelled | undefined> {
  for (;;) {
    const [row] = await tx<(Cancelled & { stale: boolean })[]>`
      WITH agents AS MATERIALIZED (
        SELECT g.id FROM execution_agents g WHERE g.id = (SELECT x.agent_id FROM executions x WHERE x.id = ${id})
        FOR NO KEY UPDATE
      ), locked AS MATERIALIZED (
        SELECT e.id, e.status, e.agent_id, e.session_id, e.finished_at, e.cancel_requested_at FROM executions e
        WHERE e.id = ${id} AND (SELECT count(*) FROM agents) >= 0 FOR NO KEY UPDATE
      ), judged AS MATERIALIZED (
        SELECT l.*, ${newStatus} AS new_status, ${outcome} AS outcome,
          -- It was given to an agent meanwhile, which is locked first at the next try.
          l.agent_id IS NOT NULL AND NOT EXISTS (SELECT FROM agents a WHERE a.id = l.agent_id) AS stale,
          CASE WHEN ${inFlight} THEN l.agent_id END AS counted_at
        FROM locked l CROSS JOIN LATERAL (SELECT
          CASE WHEN l.session_id IS NULL THEN 'cancel_unsent' ELSE 'cancel' END AS event) AS v
      ), changed AS (
        UPDATE executions e SET status = coalesce(j.new_status, e.status), revision = e.revision + 1,
          cancel_requested_at = coalesce(e.cancel_requested_at, now()),
          finished_at = CASE WHEN j.new_status IS NOT NULL THEN now() END,
          sealed_secret = CASE WHEN j.new_status IS NULL THEN e.sealed_secret END,
          error = CASE WHEN j.new_status IS NOT NULL THEN ${wasCancelled} END
        FROM judged j WHERE e.id = j.id AND NOT j.stale AND j.outcome IN ('ends', 'asked_to_stop')
      ), released AS (
        SELECT j.counted_at AS agent_id FROM judged j WHERE NOT j.stale AND j.outcome = 'ends'
      ), counted AS (${countReleased})
      SELECT id, coalesce(new_status, status) AS status, agent_id, new_status IS NOT NULL AS ended, stale
      FROM judged WHERE outcome IN ('ends', 'asked_to_stop')`;
    if (!row?.stale) return row;
  }
}
