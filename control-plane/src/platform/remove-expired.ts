// Removes expired sessions, links, idempotency keys and rate-limit windows, and processes that are gone. Nothing reads
// such rows any more, so it may run at any time, in any process, more than once.

import type { Sql } from "../database/connect.ts";
import { KEPT_FOR as IDEMPOTENCY_KEPT_FOR } from "../mechanisms/idempotency.ts";
import { KNOWN_DAYS } from "../people/attempts.ts";
import { SESSION_IDLE } from "../people/sessions.ts";

/** Used and expired links stay a while, so that the page can say whether a link was used or has expired. */
const LINKS_KEPT_FOR = "7 days";
const OUTAGES_KEPT_FOR = "90 days";

export async function removeExpired(system: Sql): Promise<Record<string, number>> {
  const removed = {
    sessions: await system`
      DELETE FROM sessions WHERE ended_at <= now() - interval '1 day'
        OR (ended_at IS NULL AND (expires_at <= now() OR last_seen_at <= now() - ${SESSION_IDLE}::interval))`,
    known_sign_ins: await system`
      DELETE FROM known_sign_ins WHERE last_used_at <= now() - ${KNOWN_DAYS} * interval '1 day'`,
    one_time_links: await system`
      DELETE FROM one_time_links WHERE expires_at <= now() - ${LINKS_KEPT_FOR}::interval`,
    idempotency_keys: await system`
      DELETE FROM idempotency_keys WHERE created_at <= now() - ${IDEMPOTENCY_KEPT_FOR}::interval`,
    rate_limits: await system`DELETE FROM rate_limits WHERE window_ends_at <= now()`,
    // The last of a kind stays: an outage is counted from then on.
    processes: await system`
      DELETE FROM processes p WHERE last_seen_at <= now() - interval '1 hour'
        AND EXISTS (SELECT FROM processes q WHERE q.kind = p.kind AND q.last_seen_at > p.last_seen_at)`,
    control_plane_outages: await system`
      DELETE FROM control_plane_outages WHERE ended_at <= now() - ${OUTAGES_KEPT_FOR}::interval`,
  };
  return Object.fromEntries(Object.entries(removed).map(([table, result]) => [table, result.count]));
}
