// Removes deliveries that nobody needs any more, and receivers that were removed and that none of them names.

import type { Sql } from "../../database/connect.ts";

const BATCH = 1_000;

/** Returns how many deliveries. */
export async function removeOldDeliveries(system: Sql, { days }: { days: number }): Promise<number> {
  let removed = 0;
  for (;;) {
    const { count } = await system`
      DELETE FROM notification_deliveries WHERE id IN (
        SELECT id FROM notification_deliveries
        WHERE created_at < now() - ${days} * interval '1 day' AND state <> 'pending' LIMIT ${BATCH})`;
    removed += count;
    if (count < BATCH) break;
  }
  await system`
    DELETE FROM notification_receivers r WHERE removed_at < now() - ${days} * interval '1 day'
      AND NOT EXISTS (SELECT FROM notification_deliveries WHERE receiver_id = r.id)`;
  await system`DELETE FROM notification_topics WHERE queued_at < now() - interval '1 day'`;
  return removed;
}
