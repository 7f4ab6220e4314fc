// Creates a task: checks it against its type's contract, signs it, and inserts it. In the producer's own transaction, so
// that a task exists exactly when what it is for does; or alone, for a producer that changes nothing else, and then
// together with all others that come at the same time.

import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { AnyTaskType } from "@holdfast/tasks/type";
import { fieldProblems } from "../api/input.ts";
import type { AuditActor } from "../audit/record.ts";
import { isUnavailable, type Queryable, type Sql, type Tx } from "../database/connect.ts";
import { createBatches } from "../mechanisms/batches.ts";
import { selectNodeStanding, type TaskRow } from "./queries.ts";
import { checkedSecrets, type TaskSecrets, type TaskVault } from "./secrets.ts";
import type { TaskSigner } from "./signing.ts";
import { insertTask, insertTasks, type SignedNewTask } from "./transitions/create.ts";
import type { Delivered } from "./transitions/deliver.ts";
import { CLAIMED_STATUS } from "./transitions/table.ts";

export type NewTask = {
  nodeId: string;
  type: string;
  params: unknown;
  /** Exactly those that its type declares. */
  secrets?: TaskSecrets;
  /** 0 to 9; higher priorities go first. */
  priority?: number;
  /** The time within which it must begin; by default that of its type. */
  expiresInSeconds?: number;
  /** Who requested it: the audit names them, also when a reconciler enqueues it for them. */
  by: AuditActor;
  correlationId: string;
  /** The allocation that the task is for: callers without access to it do not see the task. */
  allocationId?: string;
  /** The task that it repeats. Only with an audit event of its producer. */
  replays?: string;
  /** The details of its own audit event, beside the node. */
  details?: Record<string, unknown>;
};

const DEFAULT_PRIORITY = 5;

/** In the producer's transaction, one of them at most. */
export type EnqueueOptions = {
  /** With an audit event of its own, where its producer writes none. */
  audited?: boolean;
  /** Requested by the system regularly and summed up in the audit: not published, and not listed with people's tasks. */
  routine?: boolean;
};

export type Enqueue = {
  inTransaction(tx: Tx, task: NewTask, options?: EnqueueOptions): Promise<TaskRow>;
  /** In a transaction of its own, with an audit event; those that come together share one. */
  alone(task: NewTask): Promise<TaskRow>;
  settled(): Promise<void>;
};

const MOST_IN_ONE = 128;
/** While one waits for the disk, the next is filled. */
const AT_ONCE = 2;

export function createEnqueue(options: {
  /** Commits to the disk before it returns. */
  sql: Sql;
  types: ReadonlyMap<string, AnyTaskType>;
  signer: TaskSigner;
  vault: TaskVault;
  /** How many tasks the node can be offered at once: as many are claimed as they are created. */
  roomOf(nodeId: string): number;
  /** Offers the tasks that were claimed this way. */
  offer(nodeId: string, tasks: readonly Delivered[]): void;
}): Enqueue {
  const { sql, types, signer, vault } = options;

  const prepare = (task: NewTask): { signed: SignedNewTask; type: AnyTaskType } => {
    const type = types.get(task.type);
    if (!type) throw new ApiError("task_type_unknown", { details: { type: task.type, known: [...types.keys()] } });
    const params = checkedParams(type, task.params);
    const secrets = checkedSecrets(type, task.secrets);
    const id = uuidv7();
    const expiresAt = new Date(Date.now() + (task.expiresInSeconds ?? type.expiresAfterSeconds) * 1000);
    const signature = signer.sign({
      task_id: id,
      node_id: task.nodeId,
      task_type: type.type,
      params,
      expires_at: expiresAt.toISOString(),
    });
    const signed = {
      id,
      nodeId: task.nodeId,
      type: type.type,
      params,
      sealedSecrets: secrets ? vault.seal(id, secrets) : null,
      idempotent: type.idempotent,
      timeoutSeconds: type.timeoutSeconds,
      capabilities: type.capabilities,
      priority: task.priority ?? DEFAULT_PRIORITY,
      orderKey: type.orderKey?.(params) ?? null,
      signature,
      expiresAt,
      by: task.by,
      correlationId: task.correlationId,
      allocationId: task.allocationId ?? null,
      replays: task.replays ?? null,
      details: task.details ?? {},
    };
    return { signed, type };
  };

  const together = createBatches<SignedNewTask, TaskRow | undefined>({
    most: MOST_IN_ONE,
    atOnce: AT_ONCE,
    keyOf: (task) => task.id,
    concernsAll: isUnavailable,
    run: async (tasks) => {
      const rows = await insertTasks(sql, claimWhereThereIsRoom(tasks));
      const made = new Map(rows.map((row) => [row.id, row]));
      const claimed = tasks.flatMap((task) => deliveredOf(task, made.get(task.id)));
      for (const [nodeId, its] of Map.groupBy(claimed, (task) => task.node_id)) options.offer(nodeId, its);
      return tasks.map((task) => made.get(task.id));
    },
  });

  const claimWhereThereIsRoom = (tasks: readonly SignedNewTask[]): SignedNewTask[] => {
    const room = new Map<string, number>();
    return tasks.map((task) => {
      const left = room.get(task.nodeId) ?? options.roomOf(task.nodeId);
      room.set(task.nodeId, left - 1);
      return { ...task, claim: left > 0 && task.orderKey === null };
    });
  };

  return {
    async inTransaction(tx, task, { audited = false, routine = false } = {}) {
      const { signed, type } = prepare(task);
      const row = audited ? (await insertTasks(tx, [signed]))[0] : await insertTask(tx, signed, { routine });
      return row ?? refuse(tx, task, type);
    },
    async alone(task) {
      const { signed, type } = prepare(task);
      return (await together.add(signed)) ?? refuse(sql, task, type);
    },
    settled: () => together.settled(),
  };
}

/** As a claim returns it; empty where the insert did not claim the task. */
function deliveredOf(task: SignedNewTask, row: TaskRow | undefined): Delivered[] {
  if (row?.status !== CLAIMED_STATUS) return [];
  const { id: task_id, node_id, generation, type, params, expires_at, correlation_id, priority, revision } = row;
  const offer = { task_id, node_id, generation, type, params, expires_at, correlation_id, priority, revision };
  return [{ ...offer, stop: false, signature: task.signature, sealed_secrets: task.sealedSecrets ?? null }];
}

function checkedParams(type: AnyTaskType, params: unknown): unknown {
  const result = type.params.safeParse(params);
  if (!result.success) {
    throw new ApiError("task_params_invalid", { details: { fields: fieldProblems(result.error, "params") } });
  }
  // As it is read from the database and signed: without values that JSON omits.
  return JSON.parse(JSON.stringify(result.data, refuseUnstorable));
}

/** PostgreSQL stores neither NUL nor a lone surrogate, and the signature would not match another text. */
function refuseUnstorable(key: string, value: unknown): unknown {
  if (typeof value !== "string" || (value.isWellFormed() && !value.includes("\0"))) return value;
  const problem = "contains a character that cannot be stored: NUL, or a lone surrogate";
  throw new ApiError("task_params_invalid", { details: { fields: [{ field: `params.${key}`, problem }] } });
}

async function refuse(tx: Queryable, task: NewTask, type: AnyTaskType): Promise<never> {
  const node = await selectNodeStanding(tx, task.nodeId);
  if (!node) throw new ApiError("not_found");
  if (node.status !== "active" || node.revoked) {
    throw new ApiError("node_not_active", {
      message: `The node ${node.name} is ${node.revoked ? "revoked" : node.status} and takes no new tasks.`,
      nextStep: howToWorkAgain(node),
      // The reason that an operator gave is not for the tenant whose allocation the task is for.
      details: { node: node.name, status: node.status, reason: task.allocationId ? null : node.reason },
    });
  }
  throw new ApiError("capability_missing", {
    message: `The node ${node.name} cannot run ${type.type}.`,
    details: { node: node.name, needed: type.capabilities },
  });
}

function howToWorkAgain({ name, status, revoked }: { name: string; status: string; revoked: boolean }): string {
  if (status === "retired") return "Choose another node; this one is retired, which cannot be undone.";
  if (revoked) return `Enroll it again: \`holdfast node token create --node ${name}\`, then reactivate it.`;
  if (status === "enrolling") return "Wait for the first heartbeat of its agent, which makes it active.";
  return `Choose another node, or \`holdfast node reactivate ${name}\`.`;
}
