// Erases results when their time is over, and removes executions that ended long ago.

import type { Sql } from "../database/connect.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { firstIdAt } from "../tasks/remove-old.ts";

const BATCH = 500;

/** The row stays as history, and so that the same request is not run again. */
export async function eraseResults(
  system: Sql,
  signals: Pick<Signals, "publish">,
  { afterSeconds }: { afterSeconds: number },
): Promise<{ erased: number }> {
  let erased = 0;
  for (;;) {
    const rows = await system<{ id: string }[]>`
      WITH due AS MATERIALIZED (
        SELECT id FROM executions
        WHERE finished_at IS NOT NULL AND output_erased_at IS NULL AND finished_at <= now() - ${afterSeconds} * interval '1 second'
        ORDER BY finished_at LIMIT ${BATCH} FOR NO KEY UPDATE SKIP LOCKED
      ), printed AS (
        DELETE FROM execution_output o USING due WHERE o.execution_id = due.id
      )
      UPDATE executions e SET output = NULL, payload = NULL, progress = NULL, output_erased_at = now(),
        revision = e.revision + 1
      FROM due WHERE e.id = due.id RETURNING e.id`;
    erased += rows.length;
    signals.publish(
      "execution",
      rows.map(({ id }) => id),
    );
    if (rows.length < BATCH) break;
  }
  await system`
    UPDATE execution_late_results SET output = NULL
    WHERE output IS NOT NULL AND received_at <= now() - ${afterSeconds} * interval '1 second'`;
  return { erased };
}

/** Ids are ordered by time, as of tasks. */
export async function removeOldExecutions(system: Sql, options: { days: number; now?: Date }): Promise<number> {
  const before = new Date((options.now ?? new Date()).getTime() - options.days * 86_400_000);
  let removed = 0;
  for (;;) {
    const { count } = await system`
      DELETE FROM executions WHERE id IN (
        SELECT id FROM executions WHERE id < ${firstIdAt(before)} AND finished_at < ${before}
        ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)`;
    removed += count;
    if (count < BATCH) return removed;
  }
}
