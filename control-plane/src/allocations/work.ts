// Enqueues the tasks of allocations. A task is enqueued in the transaction that changes the allocation: neither exists
// without the other. For a node that takes no work now, the task is enqueued later: until then the allocation has no task,
// and its reason says what it waits for.

import { ApiError } from "@holdfast/contracts/errors";
import type { NodeStatus, TaskFailure } from "@holdfast/contracts/node/protocol";
import type { AuditActor } from "../audit/record.ts";
import type { Tx } from "../database/connect.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import type { AllocationRow } from "./queries.ts";
import type { Move } from "./state.ts";

export type WorkFor = Pick<AllocationRow, "id" | "node_id" | "username" | "ssh_keys">;
export type Work = {
  task: Exclude<Move["task"], "none">;
  user: WorkFor;
  /** Who requested it. */
  by: AuditActor;
  correlationId: string;
  /** Enqueued again by a reconciler, for the same request. */
  again?: boolean;
};

const types = {
  provision: "allocation.provision_user",
  repair: "allocation.repair_user",
  deprovision: "allocation.deprovision_user",
} as const;

/** Throws if the node cannot get the task. Call `enqueued` of the engine after the commit. */
export async function enqueueWork(tx: Tx, engine: TaskEngine, work: Work) {
  const { task, user, by, correlationId, again = false } = work;
  const { id, node_id, username, ssh_keys } = user;
  const params = task === "deprovision" ? { username } : { username, ssh_keys };
  const request = {
    nodeId: node_id,
    type: types[task],
    params: { allocation_id: id, ...params },
    allocationId: id,
  };
  const details = { allocation_id: id, ...(again ? { again } : {}) };
  return engine.enqueue(tx, { ...request, by, correlationId, details }, { audited: true });
}

/** Returns the task, or the reason why there is none yet. */
export async function enqueueOrWait(
  tx: Tx,
  engine: TaskEngine,
  work: Work & { node: { name: string; status: NodeStatus } },
) {
  try {
    return { task: await enqueueWork(tx, engine, work), reason: null };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { task: undefined, reason: waitsFor(error, work.node) };
  }
}

function waitsFor(error: ApiError, { name, status }: { name: string; status: NodeStatus }): TaskFailure {
  if (error.code !== "node_not_active")
    return { code: error.code, message: error.message, next_step: error.nextStep };
  return {
    code: error.code,
    message: `${name} is ${status} and takes no work. The task is queued when the node is active again.`,
    next_step: `Run \`holdfast node reactivate ${name}\` to make the node active.`,
  };
}
