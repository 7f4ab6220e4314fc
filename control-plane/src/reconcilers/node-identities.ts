// Looks after what identities leave behind: removes tokens and certificates that ended long ago, and
// finds nodes that should have renewed their certificate by now, hours before it ends.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import { selectLate } from "../nodes/late-certificates.ts";

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

/** Tells of each node once, and again when it comes back after having been well. Answers with how many it told of. */
export function overdueRenewals(system: Sql, log: Log): () => Promise<number> {
  let told: ReadonlySet<string> = new Set();
  return async () => {
    const overdue = await selectLate(system);
    const fresh = overdue.filter(({ id }) => !told.has(id));
    told = new Set(overdue.map(({ id }) => id));
    for (const { id, not_after } of fresh) {
      log.warn(
        { node_id: id, not_after, overdue: overdue.length },
        "a node has not renewed its certificate in time",
      );
    }
    return fresh.length;
  };
}
