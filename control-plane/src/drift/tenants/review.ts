// Makes nodes due for classification because of their allocations. Only nodes with a cause that tenants notice: on all
// others every allocation is normal, whatever else happens.

import type { Sql, Tx } from "../../database/connect.ts";

/** For an allocation that was just created. Returns whether its node is due now. */
export async function reviewNodeOf(tx: Tx, nodeId: string): Promise<boolean> {
  const { count } = await tx`
    UPDATE node_verdicts SET review_at = now() WHERE node_id = ${nodeId} AND user_state <> 'normal'
      AND review_at > now()`;
  return count > 0;
}

/** For terminals that became ready since: they show that their allocations work. Reads open terminals only. */
export async function noticeTerminals(system: Sql): Promise<void> {
  await system`
    UPDATE node_verdicts v SET review_at = now() FROM terminal_sessions s
    WHERE s.node_id = v.node_id AND s.state = 'open' AND s.heard_at > v.classified_at
      AND v.user_state <> 'normal' AND v.review_at > now()`;
}
