// The serial log of a lease's VM, read from its host by a task that waits there for more. Nothing of it stays in the database: the
// task is removed as soon as its result was read. Of a VM that is gone, the end of the log is in the result of its removal.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { readLeaseLog } from "@holdfast/contracts/endpoints/leases";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import type { AuditActor } from "../audit/record.ts";
import type { Sql } from "../database/connect.ts";
import { selectTask, type TaskRow } from "../tasks/queries.ts";
import type { LeaseRow } from "./queries.ts";

type Answer = AnswerOf<typeof readLeaseLog>;
type Wanted = {
  from: string | undefined;
  waitSeconds: number;
  signal: AbortSignal;
  by: AuditActor;
  correlationId: string;
};

const TYPE = "vm.serial_log";
/** How long a host may take beside the time that it waits. */
const ANSWERS_WITHIN_MS = 12_000;

const none: Answer = { text: "", next: null, skipped: false, ended: false };

export async function readSerialLog(api: ApiContext, lease: LeaseRow, wanted: Wanted): Promise<Answer> {
  const { from, waitSeconds } = wanted;
  const runs = ["booting", "connected", "running", "terminating"].includes(lease.status);
  if (!runs || lease.host_id === null || lease.vm_id === null) {
    if (lease.finished_at === null && lease.status !== "orphaned") return none;
    return { ...none, ended: true, text: from === undefined ? await keptTail(api.system, lease.id) : "" };
  }
  const task = await startReading(api, lease, wanted);
  const options = { waitMs: waitSeconds * 1000 + ANSWERS_WITHIN_MS, signal: wanted.signal, until: "end" } as const;
  await api.tasks.changed({ id: task.id, revision: undefined }, options);
  const ended = await selectTask(api.system, task.id);
  if (!ended?.finished_at) await cancel(api, task.id);
  else await api.system`DELETE FROM tasks WHERE id = ${task.id} AND type = ${TYPE} AND finished_at IS NOT NULL`;
  if (ended?.status === "completed") {
    const { text, next, skipped } = ended.result as Pick<Answer, "text" | "next" | "skipped">;
    return { text, next, skipped, ended: false };
  }
  // It ended a moment ago: its lease says so next.
  if (ended?.failure?.code === "vm_missing") return { ...none, ended: true };
  const why = ended?.failure?.message;
  throw new ApiError("lease_log_unavailable", {
    ...(why === undefined ? {} : { message: `The host ${lease.host_name} did not return the serial log: ${why}` }),
    details: { host: lease.host_name, reason: ended?.failure?.code ?? "no_response" },
  });
}

function startReading({ system, tasks }: ApiContext, lease: LeaseRow, wanted: Wanted): Promise<TaskRow> {
  const params = { vm_id: lease.vm_id, from: wanted.from ?? null, wait_seconds: wanted.waitSeconds };
  const task = {
    ...{ nodeId: lease.host_id ?? "", type: TYPE, params, by: wanted.by, correlationId: wanted.correlationId },
    priority: 7,
  };
  // Reading changes nothing, and is repeated for as long as a page is open: neither audited nor listed.
  const enqueue = system.begin((tx) => tasks.enqueue(tx, task, { routine: true }), {
    settings: { synchronous_commit: "off" },
  });
  return enqueue.then((made) => {
    tasks.enqueued(made);
    return made;
  });
}

/** Nobody waits for it any more. */
async function cancel({ system, tasks }: ApiContext, taskId: string): Promise<void> {
  const task = await system.begin((tx) => tasks.cancel(tx, taskId));
  if (task) tasks.cancelled(task);
}

async function keptTail(system: Sql, leaseId: string): Promise<string> {
  const [row] = await system<{ tail: string | null }[]>`
    SELECT t.result ->> 'serial_tail' AS tail
    FROM vm_leases l JOIN tasks t ON t.node_id = l.host_id AND t.id > l.id AND t.type = 'vm.terminate' AND t.order_key = l.vm_id::text
    WHERE l.id = ${leaseId} AND t.result IS NOT NULL ORDER BY t.id DESC LIMIT 1`;
  return row?.tail ?? "";
}
