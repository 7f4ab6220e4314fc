// Records the terminate task of a lease whose VM is to go. The state does not change by it: the task's result changes it.

import type { Tx } from "../../database/connect.ts";
import { isLeaving } from "./sql.ts";

export type LeavingLease = {
  id: string;
  org_id: string;
  host_id: string;
  vm_id: string;
  launch_task_id: string;
  launch_settled: boolean;
  correlation_id: string;
};

const leaving = isLeaving();

/** Locks one lease that needs a terminate task and has none, on a host that takes tasks. Others than `but`. */
export async function lockNextLeaving(tx: Tx, but: readonly string[]): Promise<LeavingLease | undefined> {
  const [row] = await tx<LeavingLease[]>`
    SELECT l.id, l.org_id, l.host_id, l.vm_id, l.launch_task_id, l.launch_settled, l.correlation_id
    FROM vm_leases l JOIN nodes n ON n.id = l.host_id
    WHERE ${leaving} AND l.terminate_task_id IS NULL AND n.status = 'active' AND n.revoked_at IS NULL
      AND (l.terminate_after IS NULL OR l.terminate_after <= now()) AND l.id <> ALL (${[...but]}::uuid[])
    ORDER BY l.id LIMIT 1 FOR NO KEY UPDATE OF l SKIP LOCKED`;
  return row;
}

/** The transaction must have locked the row. */
export async function setTerminateTask(tx: Tx, id: string, taskId: string): Promise<void> {
  await tx`UPDATE vm_leases SET terminate_task_id = ${taskId}, revision = revision + 1 WHERE id = ${id}`;
}
