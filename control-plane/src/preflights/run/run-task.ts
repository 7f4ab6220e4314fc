// A task of a preflight on its node, under the run's correlation id.

import { randomUUID } from "node:crypto";
import { cancelTask, createTask, getTask, type Task, terminalStatuses } from "@holdfast/contracts/endpoints/tasks";
import type { Means } from "./means.ts";

const WAIT_SECONDS = 5;

/** Leaves nothing queued: what did not end in time is cancelled. */
export async function runTask(
  { client, nodeId, correlationId }: Means,
  { type, params }: { type: string; params: Record<string, unknown> },
  signal: AbortSignal,
): Promise<Task> {
  const body = { type, params, expires_in_seconds: 15 };
  const call = { correlationId, signal };
  let task = await client(createTask, {
    ...{ params: { node_id: nodeId }, body, idempotencyKey: randomUUID(), ...call },
  });
  try {
    while (!terminalStatuses.has(task.status) && !signal.aborted) {
      const query = { wait_seconds: WAIT_SECONDS, revision: task.revision, until: "end" } as const;
      task = await client(getTask, { params: { task_id: task.id }, query, ...call });
    }
    return task;
  } catch (error) {
    if (!signal.aborted) throw error;
    const late = await client(cancelTask, { params: { task_id: task.id }, correlationId }).catch(() => task);
    // Cancelled by us: how far it came is what counts.
    return { ...late, status: late.generation > 0 ? "dispatched" : "queued" };
  }
}
