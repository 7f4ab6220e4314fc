// Repeated failures that are over without anybody having reported it: a node whose certificate was refused sends heartbeats
// again. Not noticed with the heartbeat, which gets no statement more for it.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { Sql } from "../../database/connect.ts";
import type { FailureAudit } from "./failures.ts";

/** So long after the last failure, a recovery is still recorded as one. */
const KEPT_FOR = "30 days";
const MOST_IN_A_TURN = 250;

type Recovered = { node_id: string; org_id: string; name: string; correlation_id: string | null };

/**
 * Refusals of nodes that have reported since, and were not refused for a whole window: a replaced certificate that an old
 * agent goes on using is refused between the heartbeats of the new one. Returns how many failures are over.
 */
export async function auditConnected(
  system: Sql,
  failures: FailureAudit,
  { windowSeconds }: { windowSeconds: number },
): Promise<number> {
  return system.begin(async (tx) => {
    const nodes = await tx<Recovered[]>`
      SELECT DISTINCT p.node_id, p.org_id, n.name, p.correlation_id
      FROM audit_failures f JOIN node_presence p ON p.node_id = f.actor_id JOIN nodes n ON n.id = p.node_id
      WHERE f.action = 'node.connect' AND f.actor_type = 'node' AND p.heartbeat_at > f.last_seen_at
        AND NOT EXISTS (
          SELECT FROM audit_failures other WHERE other.action = f.action AND other.actor_id = f.actor_id
            AND other.last_seen_at > now() - ${windowSeconds} * interval '1 second')
      LIMIT ${MOST_IN_A_TURN}`;
    let over = 0;
    for (const { node_id: id, org_id: orgId, name, correlation_id } of nodes) {
      over += await failures.recovered(tx, {
        ...{ orgId, action: "node.connect", correlationId: correlation_id ?? uuidv7() },
        by: { actor_type: "node", actor_id: id, actor_name: name, role: "node" },
        target: { type: "node", id, name },
      });
    }
    return over;
  });
}

export async function removeForgotten(system: Sql): Promise<number> {
  const { count } = await system`DELETE FROM audit_failures WHERE last_seen_at <= now() - ${KEPT_FOR}::interval`;
  return count;
}
