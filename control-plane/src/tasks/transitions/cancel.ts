// Cancels a task: at once while no node has it; otherwise its node is requested to stop, and its result ends the task.

import type { Tx } from "../../database/connect.ts";
import { commonFailure } from "../failures.ts";
import { selectTask, type TaskRow, taskColumns } from "../queries.ts";
import { hasOutcome, isChangedBy, statusAfter } from "./sql.ts";

const endsIt = isChangedBy("cancel");
const asksToStop = hasOutcome("cancel", "asked_to_stop");
const newStatus = statusAfter("cancel");

/** A task that has ended, or was cancelled before, stays as it is. Waits for a claim or result of the row under way. */
export async function requestCancel(tx: Tx, id: string): Promise<TaskRow | undefined> {
  const failure = JSON.stringify(commonFailure("task_cancelled"));
  const [row] = await tx<TaskRow[]>`
    UPDATE tasks AS t SET
      status = ${newStatus},
      failure = CASE WHEN ${endsIt} THEN ${failure}::text::json END,
      finished_at = CASE WHEN ${endsIt} THEN now() END,
      sealed_secrets = CASE WHEN NOT (${endsIt}) THEN t.sealed_secrets END,
      cancel_requested_at = now(),
      revision = t.revision + 1
    WHERE t.id = ${id} AND (${endsIt} OR ${asksToStop}) AND t.cancel_requested_at IS NULL
    RETURNING ${taskColumns(tx)}`;
  return row ?? selectTask(tx, id);
}
