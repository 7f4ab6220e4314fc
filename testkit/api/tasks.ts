// Task engines over one database, as api replicas have them, and nodes that exist in the database only.

import type { TaskResultReport } from "@holdfast/contracts/node/protocol";
import type { commonTaskFailures } from "@holdfast/contracts/node/task-failures";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import noop from "@holdfast/tasks/node.noop/contract";
import { type AnyTaskType, taskType } from "@holdfast/tasks/type";
import { z } from "zod";
import { systemActor } from "../../control-plane/src/audit/record.ts";
import { type Sql, withOrg } from "../../control-plane/src/database/connect.ts";
import { openKeyring } from "../../control-plane/src/mechanisms/sealing/keyring.ts";
import { openSignals, type Signals } from "../../control-plane/src/mechanisms/signals.ts";
import { createTaskEngine, openTaskPools, type TaskEngine } from "../../control-plane/src/tasks/engine.ts";
import type { NewTask } from "../../control-plane/src/tasks/enqueue.ts";
import type { TaskRow } from "../../control-plane/src/tasks/queries.ts";
import { openTaskVault } from "../../control-plane/src/tasks/secrets.ts";
import { openTaskSigner, type TaskSigner } from "../../control-plane/src/tasks/signing.ts";
import { createTestDatabase, openRoles, type TestDatabase } from "../database/database.ts";
import { atEnd } from "../lifetime/at-end.ts";

export type Replica = { engine: TaskEngine; signals: Signals; signer: TaskSigner; system: Sql };

export type TaskLab = {
  database: TestDatabase;
  app: Sql;
  system: Sql;
  superuser: Sql;
  orgId: string;
  newNode(options?: { status?: string; capabilities?: string[] }): Promise<string>;
  newReplica(): Promise<Replica>;
  /** As a tenant's request does it: in a transaction, and the node is woken after the commit. */
  enqueue(replica: Replica, task: Partial<NewTask> & { nodeId: string }): Promise<TaskRow>;
  cancel(replica: Replica, taskId: string): Promise<TaskRow | undefined>;
  /** Of the only task with that correlation id. */
  idOf(correlationId: string): Promise<string>;
  row(taskId: string): Promise<TaskRow & { lease_until: Date | null; reported: boolean }>;
};

const declared = {
  kind: "desired_state",
  timeoutSeconds: 30,
  expiresAfterSeconds: 300,
  concurrency: 1,
  capabilities: [],
  byHand: true,
  resultBytes: 1024,
  params: z.strictObject({ key: z.string().default("k"), size: z.int().max(100).optional() }),
  progress: z.strictObject({ percent: z.number() }),
  result: z.strictObject({ done: z.boolean() }),
  failures: { out_of_sorts: { message: "It did not feel like it.", nextStep: "Ask nicely." } },
} as const;

const testTypes: AnyTaskType[] = [
  noop,
  taskType({ ...declared, type: "test.repeat", summary: "may run twice", idempotent: true }),
  taskType({ ...declared, type: "test.once", summary: "runs once", idempotent: false }),
  taskType({ ...declared, type: "test.order", summary: "in order", idempotent: true, orderKey: ({ key }) => key }),
  taskType({
    ...declared,
    type: "test.able",
    summary: "not for all",
    idempotent: true,
    capabilities: ["os_users"],
  }),
  taskType({ ...declared, type: "test.secret", summary: "needs a key", idempotent: true, secrets: ["key"] }),
  taskType({
    ...declared,
    type: "test.secret_once",
    summary: "needs it once",
    idempotent: false,
    secrets: ["key"],
  }),
];

export async function openTaskLab(): Promise<TaskLab> {
  const database = await createTestDatabase();
  const { app, system, superuser } = openRoles(database);
  const orgId = uuidv7();
  await superuser`INSERT INTO organizations (id, slug, name) VALUES (${orgId}, 'lab', 'Lab')`;
  const log = createLog({ process: "test", level: "silent" });
  const keyring = await openKeyring(system, { current: { id: "test", key: Buffer.alloc(32, 7) } });
  const types = new Map(testTypes.map((type) => [type.type, type]));

  return {
    database,
    app,
    system,
    superuser,
    orgId,
    async newNode({ status = "active", capabilities } = {}) {
      const id = uuidv7();
      await superuser`
        INSERT INTO nodes (id, org_id, name, status, revoked_at)
        VALUES (${id}, ${orgId}, ${`node-${id.slice(-12)}`}, ${status}, ${status === "retired" ? new Date() : null})`;
      if (capabilities) {
        await superuser`
          INSERT INTO node_presence (node_id, org_id, heartbeat_at, instance_id, boot_id, clock_skew_ms, heartbeat)
          VALUES (${id}, ${orgId}, now(), ${uuidv7()}, 'boot', 0, ${superuser.json({ facts: { capabilities } })})`;
      }
      return id;
    },
    async newReplica() {
      const signals = await openSignals(system, log);
      const signer = await openTaskSigner(system, keyring, { log });
      const pools = openTaskPools({ url: database.systemUrl, application: "test" });
      const vault = await openTaskVault(keyring);
      const engine = createTaskEngine({ pools, signals, signer, vault, types, log });
      atEnd(async () => {
        await engine.stop();
        await signals.stop();
        await Promise.all([pools.swift.end({ timeout: 1 }), pools.durable.end({ timeout: 1 })]);
      });
      return { engine, signals, signer, system };
    },
    async enqueue({ engine }, task) {
      const made = await withOrg(app, orgId, (tx) =>
        engine.enqueue(tx, {
          type: "node.noop",
          params: {},
          by: systemActor("test"),
          correlationId: uuidv7(),
          ...task,
        }),
      );
      engine.enqueued(made);
      return made;
    },
    async cancel({ engine }, taskId) {
      const task = await withOrg(app, orgId, (tx) => engine.cancel(tx, taskId));
      if (task) engine.cancelled(task);
      return task;
    },
    async idOf(correlationId) {
      const [row] = await superuser<
        { id: string }[]
      >`SELECT id FROM tasks WHERE correlation_id = ${correlationId}`;
      if (!row) throw new Error(`there is no task for ${correlationId}`);
      return row.id;
    },
    async row(taskId) {
      const [row] = await superuser<(TaskRow & { lease_until: Date | null; reported: boolean })[]>`
        SELECT * FROM tasks WHERE id = ${taskId}`;
      if (!row) throw new Error(`there is no task ${taskId}`);
      return row;
    },
  };
}

export const succeeded = (
  taskId: string,
  generation: number,
  result: unknown = { echo: null },
): TaskResultReport => ({
  task_id: taskId,
  generation,
  timings: { run: 1 },
  outcome: { status: "succeeded", result },
});

export const ended = (
  taskId: string,
  generation: number,
  status: "failed" | "refused" | "cancelled" | "interrupted",
  code: keyof typeof commonTaskFailures | (string & {}) = "executor_failed",
): TaskResultReport => ({
  task_id: taskId,
  generation,
  timings: {},
  outcome: { status, failure: { code, message: "", next_step: "" } },
});

/** A poll that takes what is there and does not wait. */
export const atOnce = (options: { room?: number; holding?: { task_id: string; generation: number }[] } = {}) => ({
  instanceId: "instance",
  room: options.room ?? 32,
  holding: options.holding ?? [],
  waitMs: 0,
  signal: new AbortController().signal,
});

export const waiting = (
  options: { room?: number; holding?: { task_id: string; generation: number }[]; instanceId?: string } = {},
  signal: AbortSignal = new AbortController().signal,
) => ({
  instanceId: options.instanceId ?? "instance",
  room: options.room ?? 32,
  holding: options.holding ?? [],
  waitMs: 25_000,
  signal,
});
