// Removes grants that have expired, with an audit event each. Access ends at the expiry time; this only removes the rows.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { recordAudit, systemActor } from "../audit/record.ts";
import type { Sql } from "../database/connect.ts";

type Expired = {
  org_id: string;
  allocation_id: string;
  name: string;
  grantee_id: string;
  grantee: string;
  level: string;
  expires_at: Date;
};

/** Returns how many there were. */
export async function expireGrants(system: Sql, log: Log): Promise<number> {
  return system.begin(async (tx) => {
    const rows = await tx<Expired[]>`
      DELETE FROM allocation_grants g USING allocations a, nodes n, users u
      WHERE g.expires_at <= now() AND a.id = g.allocation_id AND n.id = a.node_id AND u.id = g.grantee_id
      RETURNING g.org_id, g.allocation_id, a.username || '@' || n.name AS name, g.grantee_id, u.email AS grantee,
        g.level, g.expires_at`;
    for (const { org_id: orgId, allocation_id: id, name, grantee_id, grantee, level, expires_at } of rows) {
      await recordAudit(tx, log, {
        orgId,
        by: systemActor("reconciler"),
        action: "allocation.expire_grant",
        target: { type: "allocation", id, name },
        result: "allowed",
        correlationId: uuidv7(),
        details: { grantee_id, grantee, level, expired_at: expires_at.toISOString() },
      });
    }
    return rows.length;
  });
}
