// Allocations over HTTP.

import {
  createAllocation,
  getAllocation,
  listAllocations,
  releaseAllocation,
  repairAllocation,
} from "@holdfast/contracts/endpoints/allocations";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { orgRoute } from "../api/route.ts";
import { auditActor } from "../audit/record.ts";
import { type Tx, withOrg } from "../database/connect.ts";
import { seesReasons, taskForTenant } from "../drift/tenants/redact.ts";
import { reviewNodeOf } from "../drift/tenants/review.ts";
import { selectMember } from "../members/queries.ts";
import { nameOf } from "../people/actor.ts";
import { requireRoom } from "../quotas/room.ts";
import { toTask } from "../tasks/queries.ts";
import { type Caller, callerOf, ownerOf } from "./access.ts";
import {
  changeAllocation,
  type Host,
  insertAllocation,
  recordRequester,
  type SeenRow,
  selectAllocations,
  selectHost,
  selectLiveAllocation,
  selectProjectId,
} from "./queries.ts";
import { lockForChange, presentAllocation, readAllocation } from "./read.ts";
import { allocationOutcome } from "./state.ts";
import { enqueueOrWait, enqueueWork } from "./work.ts";

export function allocationRoutes(api: ApiContext): void {
  orgRoute(api, createAllocation, async (call) => {
    const { body, org, actor, tx, touched, afterCommit, correlationId } = call;
    const { username, ssh_keys } = body;
    const caller = callerOf(call);
    const host = await selectHost(tx, body.node_id);
    if (!host) throw new ApiError("not_found", { message: "Node not found." });
    refuseUnusable(host, username);
    const projectId = await chooseProject(tx, body.project_id);
    const owner = body.owner_id === undefined ? ownerOf(actor) : await chooseOwner(tx, caller, body.owner_id);
    await requireRoom(tx, org.id, owner, { isNew: true });
    const user = { id: uuidv7(), org_id: org.id, node_id: host.id, username, ssh_keys };
    const by = auditActor(actor, org.role);
    const task = await enqueueWork(tx, api.tasks, { task: "provision", user, by, correlationId });
    const project = { project_id: projectId, task_id: task.id, created_by: nameOf(actor) };
    const allocation = { ...user, ...project, ...owner, ...by };
    if (!(await insertAllocation(tx, allocation))) throw await exists(tx, caller, allocation, host);
    const target = { type: "allocation", id: user.id, name: `${username}@${host.name}` };
    touched(target, { task_id: task.id, owner: owner.owner_name });
    const isDue = await reviewNodeOf(tx, host.id);
    afterCommit(() => {
      if (isDue) api.signals.publish("evidence", [host.id]);
      api.tasks.enqueued(task);
      api.allocations.changed(user.id, task.id);
    });
    return presentAllocation(caller, await readAllocation(tx, caller, user.id, "view"));
  });

  orgRoute(api, listAllocations, async (call) => {
    const { query, tx } = call;
    const caller = callerOf(call);
    const { node_id: nodeId, project_id: projectId, status, owner, limit } = query;
    const before = pageStart(listAllocations, query.cursor);
    const rows = await selectAllocations(tx, caller, { nodeId, projectId, status, owner }, { before, limit });
    const toItem = (row: SeenRow) => presentAllocation(caller, row);
    return toPage(listAllocations, rows, { limit, idOf: (row) => row.id, toItem });
  });

  orgRoute(
    api,
    getAllocation,
    async (call) => {
      const caller = callerOf(call);
      return presentAllocation(caller, await readAllocation(call.tx, caller, call.params.allocation_id, "view"));
    },
    {
      waitFirst: async (call) => {
        const { params, query, org, signal } = call;
        if (query.wait_seconds === 0) return;
        // The caller may wait only for what it can see: even the time of a change is information.
        const row = await withOrg(api.app, org.id, (tx) =>
          readAllocation(tx, callerOf(call), params.allocation_id, "view"),
        );
        const { revision = row.revision } = query;
        if (row.status === "released" || row.revision !== revision) return;
        await api.allocations.awaiting.changed(
          { id: row.id, revision },
          { waitMs: query.wait_seconds * 1000, signal },
        );
      },
    },
  );

  orgRoute(api, repairAllocation, async (call) => {
    const { params, org, actor, tx, touched, afterCommit, correlationId } = call;
    const row = await lockForChange(tx, callerOf(call), params.allocation_id, "use");
    const target = { type: "allocation", id: row.id, name: `${row.username}@${row.node_name}` };
    const outcome = allocationOutcome(row.status, "repair");
    if (typeof outcome === "string") throw notActive(row);
    const by = auditActor(actor, org.role);
    const task = await enqueueWork(tx, api.tasks, { task: outcome.task, user: row, by, correlationId });
    await changeAllocation(tx, row.id, { status: outcome.to, reason: row.reason, taskId: task.id });
    touched(target, { task_id: task.id });
    afterCommit(() => {
      api.tasks.enqueued(task);
      api.allocations.changed(row.id, undefined);
    });
    return seesReasons(call) ? toTask(task) : taskForTenant(toTask(task));
  });

  orgRoute(api, releaseAllocation, async (call) => {
    const { params, org, actor, tx, touched, afterCommit, correlationId } = call;
    const caller = callerOf(call);
    const row = await lockForChange(tx, caller, params.allocation_id);
    touched({ type: "allocation", id: row.id, name: `${row.username}@${row.node_name}` });
    const outcome = allocationOutcome(row.status, "release");
    if (typeof outcome === "string") return presentAllocation(caller, row);
    // A provision task that was not started is cancelled; one that was is undone by the next task.
    const unwanted =
      row.status === "requested" && row.task_id ? await api.tasks.cancel(tx, row.task_id) : undefined;
    const node = { name: row.node_name, status: row.node_status };
    const by = auditActor(actor, org.role);
    const work = { task: outcome.task, user: row, node, by, correlationId };
    const { task, reason } = await enqueueOrWait(tx, api.tasks, work);
    await changeAllocation(tx, row.id, { status: outcome.to, reason, taskId: task?.id ?? null });
    await recordRequester(tx, row.id, by);
    afterCommit(() => {
      if (unwanted) api.tasks.cancelled(unwanted);
      if (task) api.tasks.enqueued(task);
      api.allocations.changed(row.id, task?.id);
    });
    return presentAllocation(caller, await readAllocation(tx, caller, row.id, "view"));
  });
}

function notActive({ status, username, node_name }: SeenRow): ApiError {
  return new ApiError("allocation_not_active", {
    message: `The allocation of ${username} on ${node_name} is ${status}; only an active one can be repaired.`,
    ...(status === "requested" ? { nextStep: "Wait until the node has created the user, then try again." } : {}),
    details: { status },
  });
}

/** Only administrators may name another member as the owner. */
async function chooseOwner(tx: Tx, caller: Caller, userId: string) {
  if (!caller.administers && userId !== caller.userId) {
    throw new ApiError("forbidden", {
      message: "Only administrators create allocations for others.",
      details: { needed: "allocations:admin" },
    });
  }
  const member = await selectMember(tx, userId);
  if (!member) throw new ApiError("not_found", { message: "Member not found in this organization." });
  return { owner_user_id: member.user_id, owner_token_id: null, owner_name: member.email };
}

/** Refuses a node that takes no work now, or that cannot have this user. */
function refuseUnusable(host: Host, username: string): void {
  if (host.status !== "active" || host.revoked_at !== null) {
    const state = host.revoked_at === null ? host.status : "revoked";
    throw new ApiError("node_not_active", {
      message: `The node ${host.name} is ${state} and takes no new work.`,
      details: { node: host.name, status: host.status },
      ...(host.status === "enrolling"
        ? { nextStep: "Start its agent. The node becomes active with the first heartbeat." }
        : {}),
    });
  }
  const ownAccountOnly = host.capabilities !== null && !host.capabilities.includes("os_users");
  if (ownAccountOnly && host.account !== username) {
    throw new ApiError("own_account_only", { details: { account: host.account } });
  }
}

async function chooseProject(tx: Tx, wanted: string | undefined): Promise<string> {
  const found = await selectProjectId(tx, wanted);
  if (found) return found;
  if (wanted !== undefined) throw new ApiError("not_found", { message: "Project not found." });
  throw new ApiError("project_required");
}

async function exists(
  tx: Tx,
  caller: Caller,
  user: { node_id: string; username: string },
  host: Host,
): Promise<ApiError> {
  const other = await selectLiveAllocation(tx, caller, user);
  return new ApiError("allocation_exists", {
    message: `The user ${user.username} on ${host.name} belongs to an allocation already.`,
    details: other ? { allocation: other.id, status: other.status } : {},
  });
}
