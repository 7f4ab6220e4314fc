// Tasks over HTTP, for people and producers.

import {
  cancelTask,
  createTask,
  getTask,
  listTasks,
  listTaskTypes,
  replayTask,
  type TaskTypeInfo,
} from "@holdfast/contracts/endpoints/tasks";
import { ApiError } from "@holdfast/contracts/errors";
import { commonTaskFailures, type FailureEntry } from "@holdfast/contracts/node/task-failures";
import type { AnyTaskType } from "@holdfast/tasks/type";
import { z } from "zod";
import { callerOf } from "../allocations/access.ts";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { orgRoute } from "../api/route.ts";
import { auditActor } from "../audit/record.ts";
import { withOrg } from "../database/connect.ts";
import { seesReasons, taskForTenant } from "../drift/tenants/redact.ts";
import { selectTaskFor, selectTasks, type TaskRow, toTask } from "./queries.ts";
import { replayRefusal, selectReplayed } from "./replay.ts";

export function taskRoutes(api: ApiContext): void {
  const { tasks } = api;
  const types = [...tasks.types.values()].map(describeType);
  orgRoute(api, listTaskTypes, async () => ({ items: types }));

  const shown = (call: Parameters<typeof seesReasons>[0], row: TaskRow) =>
    seesReasons(call) ? toTask(row) : taskForTenant(toTask(row));

  orgRoute(api, createTask, async (call) => {
    const { params, body, actor, org, correlationId, tx, touched, afterCommit } = call;
    const type = tasks.types.get(body.type);
    if (type && !type.byHand) {
      throw new ApiError("forbidden", {
        message: `Tasks of type ${type.type} are created by the control plane only.`,
        nextStep:
          "Use the endpoint that the task belongs to. GET /v1/task-types lists the types that can be run by hand.",
        details: { type: type.type },
      });
    }
    const task = await tasks.enqueue(tx, {
      nodeId: params.node_id,
      type: body.type,
      params: body.params,
      priority: body.priority,
      ...(body.expires_in_seconds === undefined ? {} : { expiresInSeconds: body.expires_in_seconds }),
      by: auditActor(actor, org.role),
      correlationId,
    });
    touched({ type: "task", id: task.id, name: task.type }, { node_id: task.node_id });
    afterCommit(() => tasks.enqueued(task));
    return shown(call, task);
  });

  orgRoute(api, listTasks, async (call) => {
    const { query, tx } = call;
    const rows = await selectTasks(tx, callerOf(call), {
      before: pageStart(listTasks, query.cursor),
      limit: query.limit,
      nodeId: query.node_id,
      status: query.status,
      type: query.type,
      incidentId: query.incident_id,
    });
    return toPage(listTasks, rows, {
      limit: query.limit,
      idOf: (row) => row.id,
      toItem: (row) => shown(call, row),
    });
  });

  orgRoute(
    api,
    getTask,
    async (call) => {
      const row = await selectTaskFor(call.tx, callerOf(call), call.params.task_id);
      if (!row) throw new ApiError("not_found");
      return shown(call, row);
    },
    {
      waitFirst: async (call) => {
        const { params, query, org, signal } = call;
        const { revision, until } = query;
        if (query.wait_seconds === 0) return;
        // The caller may wait only for what it can see: even the time of a change is information.
        const row = await withOrg(api.app, org.id, (tx) => selectTaskFor(tx, callerOf(call), params.task_id));
        const news = revision !== undefined && row?.revision !== revision && until === "change";
        if (!row || row.finished_at || news) return;
        await tasks.changed(
          { id: row.id, revision: row.revision },
          { waitMs: query.wait_seconds * 1000, until, signal },
        );
      },
    },
  );

  orgRoute(api, cancelTask, async (call) => {
    const { params, tx, touched, afterCommit } = call;
    const seen = await selectTaskFor(tx, callerOf(call), params.task_id);
    const task = seen && (await tasks.cancel(tx, seen.id));
    if (!task) throw new ApiError("not_found");
    touched({ type: "task", id: task.id, name: task.type }, { node_id: task.node_id, status: task.status });
    afterCommit(() => tasks.cancelled(task));
    return shown(call, task);
  });

  orgRoute(api, replayTask, async (call) => {
    const { params, actor, org, correlationId, tx, touched, afterCommit } = call;
    const old = await selectReplayed(tx, callerOf(call), params.task_id);
    if (!old) throw new ApiError("not_found");
    const refusal = replayRefusal(old, tasks.types.get(old.type));
    if (refusal) throw new ApiError("task_not_replayable", { ...refusal, details: { type: old.type } });
    const task = await tasks.enqueue(tx, {
      ...{ nodeId: old.node_id, type: old.type, params: old.params, priority: old.priority, replays: old.id },
      ...(old.allocation_id === null ? {} : { allocationId: old.allocation_id }),
      ...{ by: auditActor(actor, org.role), correlationId },
    });
    touched({ type: "task", id: task.id, name: task.type }, { node_id: task.node_id, replays: old.id });
    afterCommit(() => tasks.enqueued(task));
    return shown(call, task);
  });
}

function describeType(type: AnyTaskType): TaskTypeInfo {
  const failures: Record<string, FailureEntry> = { ...commonTaskFailures, ...type.failures };
  return {
    type: type.type,
    summary: type.summary,
    kind: type.kind,
    idempotent: type.idempotent,
    timeout_seconds: type.timeoutSeconds,
    capabilities: [...type.capabilities],
    by_hand: type.byHand,
    params: z.toJSONSchema(type.params, { io: "input", unrepresentable: "any" }),
    result: z.toJSONSchema(type.result, { io: "output", unrepresentable: "any" }),
    failures: Object.fromEntries(
      Object.entries(failures).map(([code, { message, nextStep }]) => [code, { message, next_step: nextStep }]),
    ),
  };
}
