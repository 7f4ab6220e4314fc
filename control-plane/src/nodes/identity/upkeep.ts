// Removes tokens and certificates that expired long ago, and finds nodes that should have renewed their certificate by
// now, hours before it expires.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../../database/connect.ts";
import { lateCertificates } from "./late-certificates.ts";

/** Long enough to look up later who joined with which token. */
const KEPT_FOR = "30 days";

export async function removeOldIdentities(system: Sql): Promise<Record<string, number>> {
  const removed = {
    enrollment_tokens: await system`
      DELETE FROM enrollment_tokens WHERE expires_at <= now() - ${KEPT_FOR}::interval`,
    node_certificates: await system`
      DELETE FROM node_certificates WHERE not_after <= now() - ${KEPT_FOR}::interval`,
  };
  return Object.fromEntries(Object.entries(removed).map(([table, result]) => [table, result.count]));
}

type Overdue = { id: string; not_after: Date };

/** Logs each node once, and again when it is overdue after having renewed. Returns how many it logged. */
export async function reportOverdueRenewals(system: Sql, log: Log): Promise<number> {
  const fresh = await system<Overdue[]>`
    WITH late AS MATERIALIZED (SELECT id, not_after FROM (${lateCertificates(system)}) AS late WHERE revoked_at IS NULL),
    renewed AS (
      UPDATE nodes SET renewal_overdue_at = NULL
      WHERE renewal_overdue_at IS NOT NULL AND id NOT IN (SELECT id FROM late))
    UPDATE nodes n SET renewal_overdue_at = now() FROM late
    WHERE n.id = late.id AND n.renewal_overdue_at IS NULL
    RETURNING n.id, late.not_after`;
  for (const { id, not_after } of fresh) {
    log.warn({ node_id: id, not_after }, "a node has not renewed its certificate in time");
  }
  return fresh.length;
}
