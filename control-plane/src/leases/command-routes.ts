// Commands in the VMs of leases over HTTP. Their output is kept by the host while the VM exists, which is asked for each piece by a task;
// the task of a piece is removed when the next one is read.

import { readLeaseOutput, runLeaseCommand } from "@holdfast/contracts/endpoints/leases";
import { ApiError } from "@holdfast/contracts/errors";
import { leaseStateTitles } from "@holdfast/contracts/words/vm-titles";
import type { ApiContext } from "../api/context.ts";
import { orgRoute } from "../api/route.ts";
import { auditActor } from "../audit/record.ts";
import type { Tx } from "../database/connect.ts";
import { type LeaseRow, selectLease } from "./queries.ts";
import { applyEvents } from "./transitions/apply.ts";

const MOST_WORK = 200;
const OUTPUT = "vm.output";

export function commandRoutes(api: ApiContext): void {
  orgRoute(api, runLeaseCommand, async (call) => {
    const { tx, params, body, org, actor, correlationId, touched, afterCommit } = call;
    const { id, nodeId, vm_id } = await requireVm(tx, params.lease_id);
    const by = auditActor(actor, org.role);
    const work = body.command.join(" ").slice(0, MOST_WORK);
    await applyEvents(tx, [{ leaseId: id, vmId: null, event: "work_started", work }], by);
    const details = { lease_id: id };
    const task = await api.tasks.enqueue(
      tx,
      { nodeId, type: "vm.exec", params: { vm_id, ...body }, by, correlationId, details },
      { audited: true },
    );
    touched({ type: "lease", id }, { command_id: body.command_id, task_id: task.id });
    afterCommit(() => {
      api.tasks.enqueued(task);
      api.leases.changed(id, undefined);
    });
    return { task_id: task.id };
  });

  orgRoute(api, readLeaseOutput, async (call) => {
    const { tx, params, query, org, actor, correlationId, afterCommit } = call;
    const { id, nodeId, vm_id } = await requireVm(tx, params.lease_id);
    const { read, ...piece } = query;
    const by = auditActor(actor, org.role);
    const wanted = {
      nodeId,
      type: OUTPUT,
      params: { vm_id, ...piece },
      by,
      correlationId,
      details: { lease_id: id },
    };
    const task = await api.tasks.enqueue(tx, wanted, { routine: true });
    // Not in this transaction: members may not delete tasks. Whoever repeats the request deletes nothing more.
    if (read !== undefined)
      await api.system`
        DELETE FROM tasks WHERE id = ${read} AND type = ${OUTPUT} AND finished_at IS NOT NULL
          AND params ->> 'vm_id' = ${vm_id} AND params ->> 'command_id' = ${piece.command_id}`;
    afterCommit(() => api.tasks.enqueued(task));
    return { task_id: task.id };
  });
}

const reachable: ReadonlySet<LeaseRow["status"]> = new Set(["connected", "running"]);

async function requireVm(tx: Tx, leaseId: string): Promise<{ id: string; nodeId: string; vm_id: string }> {
  const row = await selectLease(tx, leaseId);
  if (!row) throw new ApiError("not_found");
  const { id, host_id: nodeId, vm_id, status } = row;
  if (nodeId === null || vm_id === null || !reachable.has(status))
    throw new ApiError("lease_not_connected", {
      message: `The lease is not connected: ${leaseStateTitles[status].title.toLowerCase()}.`,
      details: { status },
    });
  return { id, nodeId, vm_id };
}
