// Which tasks can be run again, once each: as a new task, so that a late result of the old one is never taken for that of
// the new one. Only types that may run twice: whether the old one ran is not known.

import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import type { CommonFailure } from "@holdfast/contracts/node/task-failures";
import type { AnyTaskType } from "@holdfast/tasks/type";
import type { Caller } from "../allocations/access.ts";
import type { Tx } from "../database/connect.ts";
import { isSeenBy, type TaskRow, taskColumns } from "./queries.ts";

export type Replayed = TaskRow & {
  /** As its type was when it was created. */
  idempotent: boolean;
  allocation_id: string | null;
  lease_over: boolean;
  /** The task that repeats it already. */
  replayed_by: string | null;
};

/** Locks the task first, so that of two replays one finds the other. Undefined: not found, or no access. */
export async function selectReplayed(tx: Tx, caller: Caller, id: string): Promise<Replayed | undefined> {
  await tx`SELECT FROM tasks t WHERE t.id = ${id} AND ${isSeenBy(tx, caller)} FOR NO KEY UPDATE OF t`;
  const [row] = await tx<Replayed[]>`
    SELECT ${taskColumns(tx)}, t.idempotent, t.allocation_id, coalesce(t.lease_until <= now(), false) AS lease_over,
           (SELECT r.id FROM tasks r WHERE r.replays = t.id) AS replayed_by
    FROM tasks t WHERE t.id = ${id} AND ${isSeenBy(tx, caller)}`;
  return row;
}

export type Refusal = { message: string; nextStep: string };
type Judged = Pick<Replayed, "id" | "type" | "status" | "idempotent" | "lease_over" | "replayed_by"> & {
  failure: { code: string } | null;
};

/** Undefined: it can be replayed. */
export function replayRefusal(
  task: Judged,
  type: Pick<AnyTaskType, "idempotent" | "byHand" | "secrets"> | undefined,
) {
  if (!task.idempotent || type?.idempotent === false) {
    return refused(
      `Tasks of type ${task.type} must not run twice, and it is not known how far this one got.`,
      `Check the node first. Then create a new task: \`holdfast task run <node> ${task.type}\`.`,
    );
  }
  if (type?.byHand === false) {
    return refused(
      `Tasks of type ${task.type} are created by the control plane, which repeats them itself.`,
      "Use the endpoint that the task belongs to, such as the repair of an allocation.",
    );
  }
  if (type?.secrets?.length) {
    return refused(
      `Tasks of type ${task.type} have secrets, which were erased when this one ended.`,
      "Use the endpoint that the task belongs to: it provides them again.",
    );
  }
  if (task.replayed_by !== null) {
    return refused("This task has been replayed.", `See that task: \`holdfast task show ${task.replayed_by}\`.`);
  }
  return ofStatus[task.status](task);
}

const refused = (message: string, nextStep: string): Refusal => ({ message, nextStep });

/** Nothing was done, or how far it got is not known. */
const interrupted: readonly CommonFailure[] = ["task_interrupted", "task_expired"];
const isInterrupted: ReadonlySet<string> = new Set(interrupted);

const ofStatus: Readonly<Record<TaskStatus, (task: Judged) => Refusal | undefined>> = {
  queued: ({ id }) =>
    refused(
      "The task is queued: its node gets it as soon as it is online.",
      `Wait, or \`holdfast task cancel ${id}\`.`,
    ),
  dispatched: ({ id, lease_over }) =>
    lease_over
      ? undefined
      : refused("The node is working on the task.", `Wait for its result: \`holdfast task show ${id}\`.`),
  completed: ({ type }) =>
    refused(
      "The task completed.",
      `Create a new task if it is needed again: \`holdfast task run <node> ${type}\`.`,
    ),
  failed: ({ failure, type }) =>
    isInterrupted.has(failure?.code ?? "")
      ? undefined
      : refused(
          "The task failed with a result.",
          `Repair what it names, then \`holdfast task run <node> ${type}\`.`,
        ),
  expired: () => undefined,
  cancelled: ({ type }) =>
    refused("The task was cancelled.", `Create a new task if it is needed: \`holdfast task run <node> ${type}\`.`),
};
