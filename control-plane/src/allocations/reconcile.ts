// Applies the outcome of an ended task to its allocation. A function of stored rows: it may run at any time, in every
// replica at once, and again after a crash.

import type { AllocationRemoval, AllocationStatus } from "@holdfast/contracts/endpoints/allocations";
import type { TaskFailure } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { actorOf } from "../audit/record.ts";
import type { Sql, Tx } from "../database/connect.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import { changeAllocation, type EndedRow, lockNextMovable, recordRemoval, recordUser } from "./queries.ts";
import { type AllocationEvent, allocationOutcome } from "./state.ts";
import { enqueueOrWait, type Work } from "./work.ts";

type ProvisionedUser = { home: string; own_account: boolean };
type RemovedUser = { removed: boolean; own_account: boolean };

/** Processes all allocations that are due, each in its own transaction. Returns how many there were. */
export async function reconcileAllocations(
  system: Sql,
  engine: TaskEngine,
  options: { log: Log; onMoved(allocationId: string, taskId: string | undefined): void },
): Promise<number> {
  // Each at most once per run: one that fails must not block those after it.
  const seen: string[] = [];
  for (;;) {
    let row: EndedRow | undefined;
    try {
      const task = await system.begin(async (tx) => {
        row = await lockNextMovable(tx, seen);
        return row && (await moveOn(tx, engine, row));
      });
      if (row && task) engine.enqueued(task);
      if (row) options.onMoved(row.id, task?.id);
    } catch (error) {
      if (!row) throw error;
      options.log.warn({ err: error, allocation_id: row.id }, "could not reconcile an allocation");
    }
    if (!row) return seen.length;
    seen.push(row.id);
  }
}

async function moveOn(tx: Tx, engine: TaskEngine, row: EndedRow) {
  const event = eventOf(row);
  const outcome = allocationOutcome(row.status, event);
  if (typeof outcome === "string")
    throw new Error(`an allocation that is ${row.status} cannot have the event ${event}`);
  if (outcome.task !== "none") return enqueueAgain(tx, engine, row, { to: outcome.to, task: outcome.task });
  await changeAllocation(tx, row.id, { status: outcome.to, reason: reasonFor(event, row), taskId: row.task_id });
  if (event === "provisioned") await recordUser(tx, row.id, row.task_result as ProvisionedUser);
  if (outcome.to === "released") await recordRemoval(tx, row.id, removalOf(row));
  return undefined;
}

/** The node was offline or takes no work: neither is a failure of the allocation. */
async function enqueueAgain(
  tx: Tx,
  engine: TaskEngine,
  row: EndedRow,
  move: { to: AllocationStatus; task: Work["task"] },
) {
  const node = { name: row.node_name, status: row.node_status };
  const correlationId = uuidv7();
  const work = { task: move.task, user: row, node, by: actorOf(row), correlationId, again: true };
  const { task, reason } = await enqueueOrWait(tx, engine, work);
  const nothingNew = task === undefined && row.task_id === null && reason?.code === row.reason?.code;
  if (nothingNew) return undefined;
  // The first task since the node takes work again: the allocation waits for its result and has no other reason.
  const lost = row.task_id === null ? null : unreachable(row);
  await changeAllocation(tx, row.id, { status: move.to, reason: reason ?? lost, taskId: task?.id ?? null });
  return task;
}

/** Exported for its test. A requested allocation has a provision task, a releasing one a deprovision task. */
export function eventOf(
  row: Pick<EndedRow, "status" | "node_status" | "task_status" | "task_failure" | "active_at">,
): AllocationEvent {
  const releasing = row.status === "releasing";
  if (row.task_status === "completed") return releasing ? "deprovisioned" : "provisioned";
  if (releasing && nothingWasMade(row)) return "deprovisioned";
  if (row.node_status === "retired") return "node_retired";
  if (row.task_status === "failed") return releasing ? "deprovision_failed" : "provision_failed";
  return "task_lost";
}

/** The node refused because the user existed before: there is nothing to remove, now or later. */
function nothingWasMade({ active_at, task_failure }: Pick<EndedRow, "active_at" | "task_failure">): boolean {
  return active_at === null && task_failure?.code === "user_not_ours";
}

/** Exported for its test. For an allocation that is released because of its task's result or its node's status. */
export function removalOf(
  row: Pick<EndedRow, "task_status" | "task_result" | "task_failure" | "active_at">,
): AllocationRemoval {
  if (row.task_status === "completed") {
    const { removed, own_account } = row.task_result as RemovedUser;
    if (own_account) return "own_account";
    return removed ? "removed" : "nothing_to_remove";
  }
  return nothingWasMade(row) ? "left_alone" : "unconfirmed";
}

function reasonFor(event: AllocationEvent, row: EndedRow): TaskFailure | null {
  switch (event) {
    case "provision_failed":
    case "deprovision_failed":
      return row.task_failure;
    case "node_retired":
      return retired(row);
    default:
      return null;
  }
}

function unreachable({ node_name }: EndedRow): TaskFailure {
  return {
    code: "node_unreachable",
    message: `${node_name} did not complete the task in time. The task is queued again until the node responds.`,
    next_step: `No action is needed if the node comes back by itself. To check it, run \`holdfast node show ${node_name}\`.`,
  };
}

function retired({ node_name, username, status }: EndedRow): TaskFailure {
  const releasing = status === "releasing";
  return {
    code: "node_retired",
    message: `${node_name} was retired before ${username} could be ${releasing ? "removed" : "created"}.`,
    next_step: releasing
      ? `If the machine still runs, remove the user ${username} there by hand.`
      : "Create the allocation on another node.",
  };
}
