// What becomes of recovery tokens with time: expiries are counted, old ones removed, and each node's day is one event in the
// audit instead of thirty.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { recordAudit, systemActor } from "../audit/record.ts";
import type { Sql, Tx } from "../database/connect.ts";

/** An expired one is refused as such for this long, then it is unknown. */
const KEPT_FOR = "1 day";
const MOST_IN_ONE = 500;

/** A token that the node has replaced by a newer one does not expire, it is just no longer needed. */
export async function expireTokens(system: Sql): Promise<{ expired: number; removed: number }> {
  const removed = await system`
    DELETE FROM recovery_tokens t WHERE expires_at <= now() AND (expires_at <= now() - ${KEPT_FOR}::interval
      OR EXISTS (SELECT FROM recovery_tokens newer WHERE newer.node_id = t.node_id AND newer.seq > t.seq
        AND newer.held_at IS NOT NULL))`;
  const expired = await system`
    WITH expired AS (
      UPDATE recovery_tokens SET expired_at = now()
      WHERE expires_at <= now() AND expired_at IS NULL AND revoked_at IS NULL
      RETURNING node_id, org_id),
    counted AS (SELECT node_id, org_id, count(*)::integer AS expired FROM expired GROUP BY node_id, org_id ORDER BY node_id)
    INSERT INTO recovery_token_days AS d (node_id, org_id, day, expired)
    SELECT node_id, org_id, current_date, expired FROM counted
    ON CONFLICT (node_id, day) DO UPDATE SET expired = d.expired + excluded.expired`;
  return { expired: expired.count, removed: removed.count };
}

/** Those that were issued before a shorter age applied. */
export async function shortenTokens(tx: Tx, maxAgeSeconds: number): Promise<void> {
  const maxAge = `${maxAgeSeconds} seconds`;
  await tx`
    UPDATE recovery_tokens SET expires_at = issued_at + ${maxAge}::interval
    WHERE expires_at > issued_at + ${maxAge}::interval AND revoked_at IS NULL`;
}

/** Off means off: what was issued before must not work any more. */
export async function revokeAllTokens(system: Sql): Promise<number> {
  const revoked = await system`
    UPDATE recovery_tokens SET revoked_at = now() WHERE revoked_at IS NULL AND expires_at > now()`;
  return revoked.count;
}

type Day = { node_id: string; org_id: string; name: string; day: string; issued: number; expired: number };

/** Of all days that are over. */
export async function auditTokenDays(system: Sql, log: Log): Promise<number> {
  for (let audited = 0; ; ) {
    const days = await system.begin(async (tx) => {
      const rows = await tx<Day[]>`
        DELETE FROM recovery_token_days d USING nodes n
        WHERE n.id = d.node_id AND (d.node_id, d.day) IN (
          SELECT node_id, day FROM recovery_token_days WHERE day < current_date
          ORDER BY node_id, day LIMIT ${MOST_IN_ONE} FOR UPDATE SKIP LOCKED)
        RETURNING d.node_id, d.org_id, n.name, d.day::text, d.issued, d.expired`;
      for (const { node_id, org_id, name, day, issued, expired } of rows) {
        await recordAudit(tx, log, {
          ...{ orgId: org_id, by: systemActor("recovery"), action: "node.recovery_tokens", result: "allowed" },
          target: { type: "node", id: node_id, name },
          correlationId: uuidv7(),
          details: { day, issued, expired },
        });
      }
      return rows;
    });
    audited += days.length;
    if (days.length < MOST_IN_ONE) return audited;
  }
}
