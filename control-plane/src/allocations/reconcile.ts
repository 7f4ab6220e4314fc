// Moves allocations on when the task that worked on them has ended. A function of what is stored: it
// may run at any time, in every replica at once, and after a crash it simply runs again.

import type { AllocationRemoval, AllocationStatus } from "@holdfast/contracts/endpoints/allocations";
import type { TaskFailure } from "@holdfast/contracts/node-protocol";
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

/** Everything there is to do now, one allocation and one transaction at a time. Returns how many there were. */
export async function reconcileAllocations(
  system: Sql,
  engine: TaskEngine,
  options: { log: Log; onMoved(allocationId: string, taskId: string | undefined): void },
): Promise<number> {
  // Each at most once a turn: one that cannot be moved must not stop those behind it.
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
      options.log.warn({ err: error, allocation_id: row.id }, "allocation could not be moved on");
    }
    if (!row) return seen.length;
    seen.push(row.id);
  }
}

async function moveOn(tx: Tx, engine: TaskEngine, row: EndedRow) {
  const event = eventOf(row);
  const outcome = allocationOutcome(row.status, event);
  if (typeof outcome === "string") throw new Error(`an allocation that is ${row.status} was not to meet ${event}`);
  if (outcome.task !== "none") return askAgain(tx, engine, row, { to: outcome.to, task: outcome.task });
  await changeAllocation(tx, row.id, { status: outcome.to, reason: reasonFor(event, row), taskId: row.task_id });
  if (event === "provisioned") await recordUser(tx, row.id, row.task_result as ProvisionedUser);
  if (outcome.to === "released") await recordRemoval(tx, row.id, removalOf(row));
  return undefined;
}

/** The node was away, or takes no work: neither is the allocation's failure. */
async function askAgain(
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
  // Asked for the first time since the node works again, it waits for nothing but the node's answer.
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

/** Refused because the name was somebody else's before us: there is nothing to take back, and never will be. */
function nothingWasMade({ active_at, task_failure }: Pick<EndedRow, "active_at" | "task_failure">): boolean {
  return active_at === null && task_failure?.code === "user_not_ours";
}

/** Exported for its test. Of an allocation that is released by what its task or its node came to. */
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
    message: `${node_name} did not do the work in time; it is asked again until it answers.`,
    next_step: `Nothing, if the node comes back by itself; \`holdfast node show ${node_name}\` tells how it is.`,
  };
}

function retired({ node_name, username, status }: EndedRow): TaskFailure {
  const releasing = status === "releasing";
  return {
    code: "node_retired",
    message: `${node_name} was retired before ${username} could be ${releasing ? "removed" : "made"}.`,
    next_step: releasing
      ? `If the machine still runs, remove the user ${username} there by hand.`
      : "Ask for the user on another node.",
  };
}
