// What agents have: they accepted requests, renew their leases, report progress, or say what they hold when they connect.
//
// Locks: waits for the requests, in the order of their ids.

import { ConstantSql, type Queryable, rowsOf } from "../../database/connect.ts";
import { targetOf } from "../../mechanisms/transition-sql.ts";
import { byEvent, isCurrent, isInFlight, isKnownTo, isRepeated, newLease } from "./sql.ts";
import type { ExecutionEvent } from "./table.ts";

export type Held = {
  requestId: string;
  agentId: string;
  generation: number;
  sessionId: string;
  /** `hold`: it may not have started. */
  event: ExecutionEvent & ("accept" | "hold");
  /** JSON; null: nothing new. */
  progress: string | null;
};

export type HeldVerdict = {
  request_id: string;
  agent_id: string;
  generation: number;
  id: string;
  /** What became of it; `asked_to_stop`: this delivery shall not run any longer. */
  outcome: "renewed" | "asked_to_stop" | "unchanged";
  /** Why it is to stop. */
  reason: string;
  /** Its status or its progress is new. */
  changed: boolean;
};

const held = rowsOf<Held>({
  request_id: ["text", (one) => one.requestId],
  agent_id: ["uuid", (one) => one.agentId],
  generation: ["integer", (one) => one.generation],
  session_id: ["uuid", (one) => one.sessionId],
  event: ["text", (one) => one.event],
  progress: ["text", (one) => one.progress],
});

const columns = { event: "v.event", status: "l.old_status" };
const outcome = byEvent(columns, ["accept", "hold", "hold_stale", "hold_repeated"], (one) =>
  typeof one === "object" ? "renewed" : one,
);
const newStatus = byEvent(columns, ["accept"], targetOf);
const known = isKnownTo("e", "r");
const fence = { isRepeated: isRepeated("e", "r"), isCurrent: isCurrent("e", "r") };
const inFlight = isInFlight("l");
/** Of `l`. */
const reason =
  new ConstantSql(`CASE WHEN l.to_cancel THEN 'cancelled' WHEN NOT l.current THEN 'given to another agent'
  ELSE 'ended' END`);

/** A delivery may occur only once. Those that are not among the rows are unknown to their agent. */
export async function holdRequests(sql: Queryable, reports: readonly Held[]): Promise<HeldVerdict[]> {
  return sql<HeldVerdict[]>`
    WITH locked AS MATERIALIZED (
      SELECT e.id, e.status, e.status AS old_status, e.finished_at, r.request_id, r.agent_id, r.generation, r.session_id,
        r.event, r.progress, e.cancel_requested_at IS NOT NULL AS to_cancel,
        ${fence.isRepeated} AS repeated, ${fence.isCurrent} AS current
      FROM (${held(reports)}) AS r JOIN executions e ON e.request_id = r.request_id AND ${known}
      ORDER BY e.id FOR NO KEY UPDATE OF e
    ), judged AS MATERIALIZED (
      SELECT l.*, ${outcome} AS outcome, ${newStatus} AS new_status, ${reason} AS reason,
        -- The lease of what an agent was asked to stop is renewed, too: it is at work until it says otherwise.
        l.current AND ${inFlight} AS renews
      FROM locked l CROSS JOIN LATERAL (SELECT CASE
        WHEN l.repeated THEN 'hold_repeated' WHEN l.current AND NOT l.to_cancel THEN l.event
        ELSE 'hold_stale' END AS event) AS v
    ), renewed AS (
      UPDATE executions e SET status = coalesce(j.new_status, e.status), session_id = j.session_id,
        accepted_at = CASE WHEN j.new_status IS NOT NULL THEN coalesce(e.accepted_at, now()) ELSE e.accepted_at END,
        lease_until = CASE WHEN j.new_status IS NOT NULL OR e.lease_until IS NOT NULL THEN ${newLease} END,
        sealed_secret = CASE WHEN j.new_status IS NULL THEN e.sealed_secret END,
        progress = coalesce(j.progress::json, e.progress),
        revision = e.revision + (j.new_status IS NOT NULL OR j.progress IS NOT NULL)::integer
      FROM judged j WHERE e.id = j.id AND j.renews
    )
    SELECT request_id, agent_id, generation, id, outcome, reason,
      renews AND (new_status IS NOT NULL OR progress IS NOT NULL) AS changed
    FROM judged`;
}
