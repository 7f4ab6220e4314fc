// Lets a failed run go on where it failed: the event, the cursor that follows from it, and the state in which it waits for room. From
// then on it acts for whoever retries it. Otherwise a later version could name secrets that only the person may use who started it.

import type { Retried } from "@holdfast/workflows/run/resume";
import type { RunState } from "@holdfast/workflows/run/state";
import type { Tx } from "../../../database/connect.ts";
import { MOST_RUN_HOURS } from "./create.ts";
import { allows, stateAfter } from "./table.ts";

/** False: it is not failed, or something has happened since. */
export async function retryRun(
  tx: Tx,
  run: { id: string; lastSeq: number; userId: string },
  { type, ...data }: Retried,
  cursor: RunState,
): Promise<boolean> {
  const { count } = await tx`
    WITH moved AS (
      UPDATE workflow_runs r SET status = ${stateAfter("'retry'")}, version = ${data.version}, user_id = ${run.userId}, cursor = ${JSON.stringify(cursor)}::text::json,
        last_seq = r.last_seq + 1, output = NULL, failure = NULL, finished_at = NULL, cancel_requested = false, claim = r.claim + 1, awaits = '{}',
        wake_at = now(), deadline_at = now() + ${MOST_RUN_HOURS} * interval '1 hour'
      WHERE r.id = ${run.id} AND r.last_seq = ${run.lastSeq} AND ${allows("retry")} RETURNING r.id, r.org_id, r.last_seq
    )
    INSERT INTO workflow_run_events (run_id, org_id, seq, type, data)
    SELECT id, org_id, last_seq, ${type}, ${JSON.stringify(data)}::text::json FROM moved`;
  return count === 1;
}
