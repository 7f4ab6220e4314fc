// Allocations over HTTP.

import {
  createAllocation,
  getAllocation,
  listAllocations,
  releaseAllocation,
} from "@holdfast/contracts/endpoints/allocations";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { orgRoute } from "../api/route.ts";
import { type Tx, withOrg } from "../database/connect.ts";
import { nameOf } from "../people/actor.ts";
import {
  changeAllocation,
  type Host,
  insertAllocation,
  lockAllocation,
  selectAllocation,
  selectAllocations,
  selectHost,
  selectLiveAllocation,
  selectProjectId,
  toAllocation,
} from "./queries.ts";
import { allocationOutcome } from "./state.ts";
import { enqueueOrWait, enqueueWork } from "./work.ts";

export function allocationRoutes(api: ApiContext): void {
  orgRoute(api, createAllocation, async ({ body, org, actor, tx, touched, afterCommit, correlationId }) => {
    const { username, ssh_keys } = body;
    const host = await selectHost(tx, body.node_id);
    if (!host) throw new ApiError("not_found", { message: "There is no such node." });
    refuseUnusable(host, username);
    const projectId = await chooseProject(tx, body.project_id);
    const user = { id: uuidv7(), org_id: org.id, node_id: host.id, username, ssh_keys };
    const createdBy = nameOf(actor);
    const task = await enqueueWork(tx, api.tasks, { task: "provision", user, createdBy, correlationId });
    const allocation = { ...user, project_id: projectId, task_id: task.id, created_by: createdBy };
    if (!(await insertAllocation(tx, allocation))) throw await exists(tx, allocation, host);
    touched({ type: "allocation", id: user.id, name: `${username}@${host.name}` }, { task_id: task.id });
    afterCommit(() => {
      api.tasks.enqueued(task);
      api.allocations.changed(user.id, task.id);
    });
    return toAllocation(await required(tx, user.id));
  });

  orgRoute(api, listAllocations, async ({ query, tx }) => {
    const filter = { nodeId: query.node_id, projectId: query.project_id, status: query.status };
    const before = pageStart(listAllocations, query.cursor);
    const rows = await selectAllocations(tx, filter, { before, limit: query.limit });
    return toPage(listAllocations, rows, { limit: query.limit, idOf: (row) => row.id, toItem: toAllocation });
  });

  orgRoute(
    api,
    getAllocation,
    async ({ params, tx }) => {
      const row = await selectAllocation(tx, params.allocation_id);
      if (!row) throw new ApiError("not_found");
      return toAllocation(row);
    },
    {
      waitFirst: async ({ params, query, org, signal }) => {
        if (query.wait_seconds === 0) return;
        // Only what the organization can see may be waited for: even the time of a change is news.
        const row = await withOrg(api.app, org.id, (tx) => selectAllocation(tx, params.allocation_id));
        const { revision = row?.revision } = query;
        if (!row || row.status === "released" || row.revision !== revision) return;
        await api.allocations.awaiting.changed(
          { id: row.id, revision },
          { waitMs: query.wait_seconds * 1000, signal },
        );
      },
    },
  );

  orgRoute(api, releaseAllocation, async ({ params, actor, tx, touched, afterCommit, correlationId }) => {
    const row = await lockAllocation(tx, params.allocation_id);
    if (!row) throw new ApiError("not_found");
    touched({ type: "allocation", id: row.id, name: `${row.username}@${row.node_name}` });
    const outcome = allocationOutcome(row.status, "release");
    if (outcome === "stays") return toAllocation(row);
    // What was not begun need not be; what was begun is undone by the task behind it.
    const unwanted =
      row.status === "requested" && row.task_id ? await api.tasks.cancel(tx, row.task_id) : undefined;
    const node = { name: row.node_name, status: row.node_status };
    const work = { task: "deprovision" as const, user: row, node, createdBy: nameOf(actor), correlationId };
    const { task, reason } = await enqueueOrWait(tx, api.tasks, work);
    await changeAllocation(tx, row.id, { status: outcome.to, reason, taskId: task?.id ?? null });
    afterCommit(() => {
      if (unwanted) api.tasks.cancelled(unwanted);
      if (task) api.tasks.enqueued(task);
      api.allocations.changed(row.id, task?.id);
    });
    return toAllocation(await required(tx, row.id));
  });
}

/** A node that takes no work now, or that has no such user to offer. */
function refuseUnusable(host: Host, username: string): void {
  if (host.status !== "active" || host.revoked_at !== null) {
    const state = host.revoked_at === null ? host.status : "revoked";
    throw new ApiError("node_not_active", {
      message: `The node ${host.name} is ${state} and takes no new work.`,
      details: { node: host.name, status: host.status },
      ...(host.status === "enrolling"
        ? { nextStep: "Start its agent: with its first heartbeat it is active." }
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
  if (wanted !== undefined) throw new ApiError("not_found", { message: "There is no such project." });
  throw new ApiError("project_required");
}

async function exists(tx: Tx, user: { node_id: string; username: string }, host: Host): Promise<ApiError> {
  const other = await selectLiveAllocation(tx, user);
  return new ApiError("allocation_exists", {
    message: `The user ${user.username} on ${host.name} belongs to an allocation already.`,
    details: other ? { allocation: other.id, status: other.status } : {},
  });
}

async function required(tx: Tx, id: string) {
  const row = await selectAllocation(tx, id);
  if (!row) throw new Error(`allocation ${id} is gone within its own transaction`);
  return row;
}
