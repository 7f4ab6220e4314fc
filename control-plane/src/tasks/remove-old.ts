// Removes the history of tasks that ended long ago, in batches so that other statements are not blocked.
// Ids are ordered by time and a task ends after it was created: the oldest ids are read first, and no
// index on the end time is needed.

import type { Sql } from "../database/connect.ts";

const BATCH = 1_000;

export async function removeOldTasks(system: Sql, options: { days: number; now?: Date }): Promise<number> {
  const before = new Date((options.now ?? new Date()).getTime() - options.days * 86_400_000);
  let removed = 0;
  for (;;) {
    const { count } = await system`
      DELETE FROM tasks WHERE id IN (
        SELECT id FROM tasks WHERE id < ${firstIdAt(before)} AND finished_at < ${before}
        ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)`;
    removed += count;
    if (count < BATCH) return removed;
  }
}

/** Lower than every id created at that time or later. */
export function firstIdAt(time: Date): string {
  const hex = time.getTime().toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
