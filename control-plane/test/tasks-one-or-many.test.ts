// The statements of the queue have a form for one task and one for many. Whatever happens to tasks one at a time, by either
// form, ends in the same rows and the same answers. Everything runs in one transaction that is rolled back: its clock
// stands still, so that times are equal as well.

import { uuidv7 } from "@holdfast/kit/uuid";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { openTaskLab, type TaskLab } from "../../testkit/api/tasks.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { systemActor } from "../src/audit/record.ts";
import type { Queryable, Tx } from "../src/database/connect.ts";
import { openTaskPools, type TaskPools } from "../src/tasks/engine.ts";
import { acceptResults, type ReportedResult } from "../src/tasks/transitions/accept-results.ts";
import { requestCancel } from "../src/tasks/transitions/cancel.ts";
import { insertTasks, type SignedNewTask } from "../src/tasks/transitions/create.ts";
import { type Asking, deliver } from "../src/tasks/transitions/deliver.ts";

let lab: TaskLab;
let pools: TaskPools;

beforeAll(async () => {
  lab = await openTaskLab();
  pools = openTaskPools({ url: lab.database.systemUrl, application: "test" });
  atEnd(() => Promise.all([pools.swift.end({ timeout: 1 }), pools.durable.end({ timeout: 1 })]));
});

const expiresAt = new Date(Date.now() + 3_600_000);

function newTask(nodeId: string, options: Partial<SignedNewTask> = {}): SignedNewTask {
  return {
    id: uuidv7(),
    nodeId,
    type: "test.repeat",
    params: { "quoted \"'\\": "{,} NULL" },
    idempotent: true,
    timeoutSeconds: 70,
    capabilities: [],
    priority: 5,
    orderKey: null,
    signature: "signature",
    expiresAt,
    by: systemActor("test"),
    correlationId: "test",
    allocationId: null,
    details: { why: 'a "reason"' },
    ...options,
  };
}

function resultOf(task: Pick<ReportedResult, "nodeId" | "taskId" | "generation" | "event">): ReportedResult {
  const succeeded = task.event === "result_succeeded";
  return {
    ...task,
    result: succeeded ? '{"echo":"{\\"a\\",NULL}"}' : null,
    failure: succeeded ? null : '{"code":"executor_failed"}',
    timings: '{"run":1}',
    outcome: '{"status":"reported"}',
  };
}

/** The same entry alone, or beside one that concerns nothing: no such node, no such task. */
const forms = {
  one: {
    insert: (tx: Queryable, task: SignedNewTask) => insertTasks(tx, [task]),
    deliver: (tx: Queryable, asking: Asking) => deliver(tx, [asking]),
    accept: (tx: Queryable, result: ReportedResult) => acceptResults(tx, [result]),
  },
  many: {
    insert: (tx: Queryable, task: SignedNewTask) => insertTasks(tx, [newTask(uuidv7()), task]),
    deliver: (tx: Queryable, asking: Asking) => deliver(tx, [{ nodeId: uuidv7(), room: 9, holding: [] }, asking]),
    accept: (tx: Queryable, result: ReportedResult) =>
      acceptResults(tx, [resultOf({ ...result, taskId: uuidv7() }), result]),
  },
};
type Form = keyof typeof forms;

const node = fc.nat(1);
const generationOff = fc.constantFrom(0, 0, 0, -1, 1, 2);
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("insert" as const),
      node,
      priority: fc.nat(9),
      idempotent: fc.boolean(),
      capabilities: fc.constantFrom([], [], ["os_users"], ["none such", "os_users"], ["none such"]),
      orderKey: fc.constantFrom(null, null, "key"),
      claim: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("deliver" as const),
      node,
      room: fc.nat(3),
      holding: fc.uniqueArray(fc.record({ pick: fc.nat(), off: generationOff }), {
        maxLength: 3,
        selector: ({ pick }) => pick,
      }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("accept" as const),
      pick: fc.nat(),
      off: generationOff,
      fromOtherNode: fc.constantFrom(false, false, false, true),
      event: fc.constantFrom("result_succeeded", "result_failed", "result_cancelled"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cancel" as const), pick: fc.nat() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("time" as const),
      pick: fc.nat(),
      column: fc.constantFrom("expires_at", "lease_until"),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("node" as const),
      node,
      status: fc.constantFrom("active", "draining", "quarantined"),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** Two nodes with their tasks, moved by one of the two forms. */
class World {
  readonly form: Form;
  readonly nodeIds: string[];
  readonly taskIds: string[] = [];

  constructor(form: Form, nodeIds: string[]) {
    this.form = form;
    this.nodeIds = nodeIds;
  }

  async take(tx: Tx, step: Step): Promise<unknown> {
    const { insert, deliver, accept } = forms[this.form];
    switch (step.do) {
      case "insert": {
        const { do: _, node, ...options } = step;
        // Never one with an order: that is the engine's part.
        const claim = options.claim && options.orderKey === null;
        const task = newTask(this.#node(node), { ...options, claim });
        this.taskIds.push(task.id);
        return insert(tx, task);
      }
      case "deliver": {
        const picked = new Map(step.holding.map(({ pick, off }) => [this.#task(pick), off]));
        const rows = await this.#rowsOf(tx, [...picked.keys()]);
        const holding = rows.map(({ id, generation }) => ({
          task_id: id,
          generation: Math.max(0, generation + (picked.get(id) ?? 0)),
        }));
        const delivered = await deliver(tx, { nodeId: this.#node(step.node), room: step.room, holding });
        return delivered.toSorted((a, b) => (a.task_id < b.task_id ? -1 : 1));
      }
      case "accept": {
        const [row] = await this.#rowsOf(tx, [this.#task(step.pick)]);
        if (!row) return [];
        const owner = this.nodeIds.indexOf(row.node_id);
        const nodeId = this.#node(step.fromOtherNode ? owner + 1 : owner);
        const generation = Math.max(0, row.generation + step.off);
        return accept(tx, resultOf({ nodeId, taskId: row.id, generation, event: step.event }));
      }
      case "cancel":
        return requestCancel(tx, this.#task(step.pick));
      case "time":
        await tx`
          UPDATE tasks SET ${tx(step.column)} = now() - interval '1 second'
          WHERE id = ${this.#task(step.pick)} AND ${tx(step.column)} IS NOT NULL`;
        return undefined;
      case "node":
        await tx`
          UPDATE nodes SET status = ${step.status}, revoked_at = ${step.status === "quarantined" ? expiresAt : null}
          WHERE id = ${this.#node(step.node)}`;
        return undefined;
    }
  }

  /** All that is stored about its tasks. */
  async stored(tx: Tx): Promise<unknown> {
    return [
      await tx`SELECT * FROM tasks WHERE node_id = ANY (${this.nodeIds}::uuid[]) ORDER BY id`,
      await tx`SELECT * FROM late_results WHERE node_id = ANY (${this.nodeIds}::uuid[]) ORDER BY task_id, generation`,
      await tx`SELECT * FROM audit_events WHERE target_id = ANY (${this.taskIds}::text[]) ORDER BY target_id`,
    ];
  }

  /** With the ids as they count in this world, and without those that nobody refers to. */
  plain(value: unknown): unknown {
    const names = new Map([
      ...this.nodeIds.map((id, index) => [id, `node ${index}`] as const),
      ...this.taskIds.map((id, index) => [id, `task ${index}`] as const),
    ]);
    const text = JSON.stringify(value ?? null, (key, one) => (key === "seq" ? undefined : one));
    return JSON.parse(text.replace(uuid, (id) => names.get(id) ?? "an id"));
  }

  #node(index: number): string {
    return this.nodeIds[index % this.nodeIds.length] ?? "";
  }

  #task(pick: number): string {
    return this.taskIds[pick % this.taskIds.length] ?? uuidv7();
  }

  async #rowsOf(tx: Tx, ids: string[]) {
    return tx<{ id: string; node_id: string; generation: number }[]>`
      SELECT id, node_id, generation FROM tasks WHERE id = ANY (${ids}::uuid[]) ORDER BY id`;
  }
}

const uuid = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** What the step returned, or how it was refused, which leaves the transaction usable. */
async function outcomeOf(tx: Tx, work: () => Promise<unknown>): Promise<unknown> {
  await tx.unsafe("SAVEPOINT step");
  try {
    return await work();
  } catch (error) {
    await tx.unsafe("ROLLBACK TO SAVEPOINT step");
    return { refused: (error as { code?: string }).code };
  }
}

async function rolledBack(work: (tx: Tx) => Promise<void>): Promise<void> {
  const done = new Error("rolled back");
  const run = pools.durable.begin(async (tx) => {
    await work(tx);
    throw done;
  });
  await run.catch((error) => {
    if (error !== done) throw error;
  });
}

const newNodes = async () => [await lab.newNode({ capabilities: ["os_users"] }), await lab.newNode()];

describe("one task or many", () => {
  it("TASK-02 TASK-04 TASK-08 end in the same rows, with the same answers", async () => {
    const nodes = { one: await newNodes(), many: await newNodes() };
    const seen = new Set<string>();
    const property = fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 24, size: "max" }), (steps) =>
      rolledBack(async (tx) => {
        const worlds = [new World("one", nodes.one), new World("many", nodes.many)] as const;
        for (const step of steps) {
          const [one, many] = [
            worlds[0].plain(await outcomeOf(tx, () => worlds[0].take(tx, step))),
            worlds[1].plain(await outcomeOf(tx, () => worlds[1].take(tx, step))),
          ];
          expect(one).toEqual(many);
          for (const what of kindsOf(step, one)) seen.add(what);
        }
        expect(worlds[0].plain(await worlds[0].stored(tx))).toEqual(worlds[1].plain(await worlds[1].stored(tx)));
      }),
    );
    const kinds = ["accepted", "late", "duplicate", "revoked", "offered", "stop", "claimed", "refused"];
    const unseen = () => kinds.filter((kind) => !seen.has(kind));
    await fc.assert(property, { numRuns: 60 });
    // What chance has left out: the comparison would say nothing about it.
    for (let more = 0; more < 20 && unseen().length > 0; more += 1) await fc.assert(property, { numRuns: 10 });
    expect(unseen()).toEqual([]);
  });

  it("sends one task without arrays, and ends it by an update alone", async () => {
    const nodeId = await lab.newNode();
    const fresh = openTaskPools({ url: lab.database.systemUrl, application: "test" });
    atEnd(() => Promise.all([fresh.swift.end({ timeout: 1 }), fresh.durable.end({ timeout: 1 })]));
    await fresh.durable.begin(async (tx) => {
      await insertTasks(tx, [newTask(nodeId)]);
      const [offer] = await deliver(tx, [{ nodeId, room: 1, holding: [] }]);
      const task = { nodeId, taskId: offer?.task_id ?? "", generation: 1, event: "result_succeeded" } as const;
      expect(await acceptResults(tx, [resultOf(task)])).toMatchObject([
        { verdict: "accepted", status: "completed" },
      ]);
      const prepared = await tx<{ statement: string }[]>`SELECT statement FROM pg_prepared_statements`;
      const texts = prepared.map((one) => one.statement.trim());
      expect(texts.filter((text) => text.startsWith("WITH asked AS NOT MATERIALIZED"))).toHaveLength(1);
      expect(texts.filter((text) => text.startsWith("WITH asked AS MATERIALIZED"))).toHaveLength(1);
      expect(texts.filter((text) => text.startsWith("UPDATE tasks t SET"))).toHaveLength(1);
      expect(texts.filter((text) => text.includes("unnest("))).toEqual([]);
    });
  });
});

function kindsOf(step: Step, answer: unknown): string[] {
  const rows = Array.isArray(answer) ? answer : [];
  if (step.do === "accept") return rows.map((row) => row.verdict);
  if (step.do === "deliver") return rows.map((row) => (row.stop ? "stop" : "offered"));
  if (step.do !== "insert") return [];
  return rows.length === 0 ? ["refused"] : rows.filter((row) => row.status === "dispatched").map(() => "claimed");
}
