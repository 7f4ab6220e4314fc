// Makes a task: checks it against its type's contract, signs it, and inserts it in the producer's
// own transaction, so that a task exists exactly when what asked for it does.

import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { AnyTaskType } from "@holdfast/tasks/type";
import { fieldProblems } from "../api/input.ts";
import type { Tx } from "../database/connect.ts";
import { insertTask, selectNodeStanding, type TaskRow } from "./queries.ts";
import type { TaskSigner } from "./signing.ts";

export type NewTask = {
  nodeId: string;
  type: string;
  params: unknown;
  /** 0 to 9; the higher goes first. */
  priority?: number;
  /** To begin within; left out, as its type says. */
  expiresInSeconds?: number;
  /** Who asked, in words. */
  createdBy: string;
  correlationId: string;
};

const DEFAULT_PRIORITY = 5;

export function createEnqueue(options: { types: ReadonlyMap<string, AnyTaskType>; signer: TaskSigner }) {
  const { types, signer } = options;
  return async (tx: Tx, task: NewTask): Promise<TaskRow> => {
    const type = types.get(task.type);
    if (!type) throw new ApiError("task_type_unknown", { details: { type: task.type, known: [...types.keys()] } });
    const params = checkedParams(type, task.params);
    const id = uuidv7();
    const expiresAt = new Date(Date.now() + (task.expiresInSeconds ?? type.expiresAfterSeconds) * 1000);
    const signature = signer.sign({
      task_id: id,
      node_id: task.nodeId,
      task_type: type.type,
      params,
      expires_at: expiresAt.toISOString(),
    });
    const row = await insertTask(tx, {
      id,
      nodeId: task.nodeId,
      type: type.type,
      params,
      idempotent: type.idempotent,
      timeoutSeconds: type.timeoutSeconds,
      capabilities: type.capabilities,
      priority: task.priority ?? DEFAULT_PRIORITY,
      orderKey: type.orderKey?.(params) ?? null,
      signature,
      expiresAt,
      createdBy: task.createdBy,
      correlationId: task.correlationId,
    });
    return row ?? refuse(tx, task, type);
  };
}

function checkedParams(type: AnyTaskType, params: unknown): unknown {
  const result = type.params.safeParse(params);
  if (!result.success) {
    throw new ApiError("task_params_invalid", { details: { fields: fieldProblems(result.error, "params") } });
  }
  // As it is read back from the database and signed: without what JSON leaves out.
  return JSON.parse(JSON.stringify(result.data));
}

async function refuse(tx: Tx, task: NewTask, type: AnyTaskType): Promise<never> {
  const node = await selectNodeStanding(tx, task.nodeId);
  if (!node) throw new ApiError("not_found");
  if (node.status !== "active" || node.revoked) {
    throw new ApiError("node_not_active", {
      message: `The node ${node.name} is ${node.revoked ? "revoked" : node.status} and takes no new tasks.`,
      details: { node: node.name, status: node.status, reason: node.reason },
    });
  }
  throw new ApiError("capability_missing", {
    message: `The node ${node.name} cannot run ${type.type}.`,
    details: { node: node.name, needed: type.capabilities },
  });
}
