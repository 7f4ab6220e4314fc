// Records in the audit that a node went offline: one event per outage, with the correlation id of the last
// heartbeat, which the node's page shows. A connection that ended is enough; without one, heartbeats must be missing. While the control plane itself was down, missing heartbeats say nothing.

import type { Log } from "@holdfast/service/log";
import { recordAudit, systemActor } from "../../audit/record.ts";
import type { Sql } from "../../database/connect.ts";
import { RECONNECT_WITHIN_SECONDS } from "./freshness.ts";

/** Nodes that went offline longer ago, while no worker ran, are not recorded. */
const NEWS_FOR = "1 day";
/** When a network fails, all its nodes go offline at once: the rest follows in the next runs. */
const MOST_IN_A_TURN = 250;

type Silent = {
  id: string;
  org_id: string;
  name: string;
  heartbeat_at: Date;
  correlation_id: string;
  disconnected_at: Date | null;
  disconnected_why: string | null;
};

/** Returns how many there were. */
export async function auditOffline(system: Sql, log: Log, rules: { staleAfterSeconds: number }): Promise<number> {
  const stale = `${rules.staleAfterSeconds} seconds`;
  return system.begin(async (tx) => {
    const rows = await tx<Silent[]>`
      SELECT n.id, n.org_id, n.name, p.heartbeat_at, p.correlation_id, p.disconnected_at, p.disconnected_why
      FROM nodes n JOIN node_presence p ON p.node_id = n.id
      WHERE n.status IN ('active', 'draining') AND n.revoked_at IS NULL
        AND p.heartbeat_at > now() - ${NEWS_FOR}::interval
        AND (p.disconnected_at < now() - ${RECONNECT_WITHIN_SECONDS} * interval '1 second'
          OR p.heartbeat_at < now() - ${stale}::interval
            AND EXISTS (SELECT FROM processes WHERE kind = 'api' AND started_at <= now() - ${stale}::interval
                          AND last_seen_at > now() - interval '20 seconds'))
        AND p.correlation_id IS NOT NULL AND NOT EXISTS (
          SELECT FROM audit_events e WHERE e.correlation_id = p.correlation_id AND e.action = ${ACTION})
      ORDER BY p.heartbeat_at LIMIT ${MOST_IN_A_TURN}`;
    for (const row of rows) {
      const { id, org_id: orgId, name, heartbeat_at, correlation_id: correlationId, disconnected_at } = row;
      await recordAudit(tx, log, {
        ...{ orgId, correlationId, by: systemActor("reconciler"), action: ACTION },
        target: { type: "node", id, name },
        result: "failed",
        reason: disconnected_at ? "connection_lost" : "heartbeat_stale",
        details: {
          last_heartbeat_at: heartbeat_at.toISOString(),
          ...(disconnected_at
            ? { disconnected_at: disconnected_at.toISOString(), disconnected_why: row.disconnected_why }
            : {}),
        },
      });
    }
    return rows.length;
  });
}

const ACTION = "node.offline";
