// Looks after what identities leave behind: removes tokens and certificates that ended long ago, and
// finds nodes that should have renewed their certificate by now, hours before it ends.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import { OVERDUE_AT } from "../nodes/attention.ts";

/** Long enough to look up afterwards who joined with what. */
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

export type OverdueNode = { id: string; not_after: Date };

/** Of nodes that are meant to be there: by the certificate they were last given. */
export async function selectOverdue(system: Sql): Promise<OverdueNode[]> {
  return system<OverdueNode[]>`
    SELECT n.id, c.not_after
    FROM nodes n CROSS JOIN LATERAL (
      SELECT not_before, not_after FROM node_certificates
      WHERE node_id = n.id ORDER BY not_after DESC LIMIT 1) c
    WHERE n.revoked_at IS NULL
      AND now() > c.not_before + (c.not_after - c.not_before) * ${OVERDUE_AT}::float8
    ORDER BY n.id`;
}

/** Tells of each node once, and again when it comes back after having been well. */
export function overdueRenewals(system: Sql, log: Log): () => Promise<void> {
  let told: ReadonlySet<string> = new Set();
  return async () => {
    const overdue = await selectOverdue(system);
    const fresh = overdue.filter(({ id }) => !told.has(id));
    told = new Set(overdue.map(({ id }) => id));
    for (const { id, not_after } of fresh) {
      log.warn(
        { node_id: id, not_after, overdue: overdue.length },
        "a node has not renewed its certificate in time",
      );
    }
  };
}
