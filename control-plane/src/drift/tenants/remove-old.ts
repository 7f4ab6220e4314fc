// Removes notifications that nobody needs any more.

import type { Sql } from "../../database/connect.ts";

const BATCH = 1_000;

/** Returns how many. */
export async function removeOldNotifications(system: Sql, { days }: { days: number }): Promise<number> {
  let removed = 0;
  for (;;) {
    const { count } = await system`
      DELETE FROM allocation_notifications WHERE id IN (
        SELECT id FROM allocation_notifications WHERE at < now() - ${days} * interval '1 day' LIMIT ${BATCH})`;
    removed += count;
    if (count < BATCH) return removed;
  }
}
