// Makes nodes due for classification that stopped reporting, or report again, whose clock went wrong, or is right again, and
// those that were never classified. Heartbeats do not do so themselves: they come all the time, and nearly all of them change
// nothing. Those of a node with an incident may disprove its cause.

import type { Sql } from "../../database/connect.ts";
import type { Policy } from "../classify/derive.ts";

/** The beginning of the id that a measured clock has as evidence of a cause. */
const MEASURED_CLOCK = '"clock:';

/** Returns their ids. */
export async function findUnnoticed(system: Sql, policy: Policy): Promise<string[]> {
  const stale = `${policy.heartbeatStaleAfterMs} milliseconds`;
  const lost = `${policy.reconnectWithinMs} milliseconds`;
  const tolerance = `${policy.clockToleranceMs} milliseconds`;
  const changed = await system<{ node_id: string }[]>`
    UPDATE node_verdicts v SET review_at = now() FROM node_presence p
    WHERE p.node_id = v.node_id AND v.review_at > now() AND (v.reporting <> (
        p.heartbeat_at BETWEEN now() - ${stale}::interval AND now() + ${tolerance}::interval
        AND (p.disconnected_at IS NULL OR p.disconnected_at >= now() - ${lost}::interval))
      OR (v.incident_id IS NOT NULL AND p.heartbeat_at > v.classified_at AND p.heartbeat_at <= now())
      OR v.reporting AND (abs(p.clock_skew_ms::bigint) > ${policy.clockToleranceMs})
        <> (strpos(v.causes::text, ${MEASURED_CLOCK}) > 0))
    RETURNING v.node_id`;
  const unknown = await system<{ node_id: string }[]>`
    INSERT INTO node_verdicts (node_id, org_id)
    SELECT id, org_id FROM nodes n WHERE NOT EXISTS (SELECT FROM node_verdicts v WHERE v.node_id = n.id)
    ORDER BY id ON CONFLICT (node_id) DO NOTHING RETURNING node_id`;
  return [...changed, ...unknown].map(({ node_id }) => node_id);
}

/** Older changes were noticed when they were made, or by a later review. */
const RECENT = "1 hour";

/** Makes nodes due whose standing an operator changed since they were classified. By an index, so at any time. */
export async function noticeStandings(system: Sql): Promise<void> {
  await system`
    UPDATE node_verdicts v SET review_at = now() FROM nodes n
    WHERE n.id = v.node_id AND n.status_changed_at > now() - ${RECENT}::interval
      AND n.status_changed_at > v.classified_at AND v.review_at > now()`;
}
