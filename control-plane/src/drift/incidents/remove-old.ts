// Removes incidents that were over long ago, with what was said in their course.

import type { Sql } from "../../database/connect.ts";

const BATCH = 1_000;

/** Returns how many. */
export async function removeOldIncidents(system: Sql, { days }: { days: number }): Promise<number> {
  let removed = 0;
  for (;;) {
    const { count } = await system`
      DELETE FROM incidents WHERE id IN (
        SELECT id FROM incidents WHERE closed_at < now() - ${days} * interval '1 day' LIMIT ${BATCH})`;
    removed += count;
    if (count < BATCH) break;
  }
  await system`
    DELETE FROM platform_incidents p WHERE closed_at < now() - ${days} * interval '1 day'
      AND NOT EXISTS (SELECT FROM incidents WHERE platform_incident_id = p.id)`;
  return removed;
}
