// Waiting for tasks, sweeping and retention: what producers see, over two replicas and one database.

import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { beforeAll, describe, expect, it } from "vitest";
import {
  atOnce,
  ended,
  openTaskLab,
  type Replica,
  succeeded,
  type TaskLab,
  waiting,
} from "../../testkit/api/tasks.ts";
import { setReachable } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { systemActor } from "../src/audit/record.ts";
import { openPool, withOrg } from "../src/database/connect.ts";
import { createAwaiting, type Revision } from "../src/mechanisms/awaiting.ts";
import { createBatches } from "../src/mechanisms/batches.ts";
import { openSignals } from "../src/mechanisms/signals.ts";
import { selectRevisions } from "../src/tasks/queries.ts";
import { removeOldTasks } from "../src/tasks/remove-old.ts";
import { sweepTasks } from "../src/tasks/sweep.ts";

let lab: TaskLab;
let here: Replica;
let there: Replica;

beforeAll(async () => {
  lab = await openTaskLab();
  here = await lab.newReplica();
  there = await lab.newReplica();
});

const long = { waitMs: 60_000 };

async function dispatched(type = "node.noop") {
  const nodeId = await lab.newNode();
  const { id } = await lab.enqueue(here, { nodeId, type });
  await here.engine.wait(nodeId, atOnce());
  return { nodeId, id, revision: (await lab.row(id)).revision };
}

describe("awaiting", () => {
  it("TASK-09 reports the end at once to waiters in the same replica and in another", async () => {
    const task = await dispatched();
    const waits = [here, there].map(({ engine }) => engine.changed(task, long));
    await here.engine.results(task.nodeId, [succeeded(task.id, 1)]);
    await Promise.all(waits);
    expect((await lab.row(task.id)).status).toBe("completed");
  });

  it("TASK-09 streams progress and phase timings while the task runs", async () => {
    const task = await dispatched();
    const changed = there.engine.changed(task, long);
    const report = { generation: 1, phase: "holding", data: { percent: 40 }, timings: { begin: 3 } };
    expect(await here.engine.progress(task.nodeId, task.id, report)).toEqual({ cancel: false });
    await changed;
    const row = await lab.row(task.id);
    expect(row).toMatchObject({ phase: "holding", progress: { percent: 40 }, timings: { begin: 3 }, revision: 3 });
    await here.engine.progress(task.nodeId, task.id, { ...report, data: { percent: "most" } });
    expect(await lab.row(task.id)).toMatchObject({ phase: "holding", progress: null });
  });

  it("TASK-09 lets a cancel reach the task by its progress, and nothing of an older delivery be stored", async () => {
    const task = await dispatched();
    await lab.cancel(here, task.id);
    const report = { generation: 1, phase: "going on", timings: {} };
    expect(await there.engine.progress(task.nodeId, task.id, report)).toEqual({ cancel: true });
    await lab.superuser`UPDATE tasks SET generation = 2 WHERE id = ${task.id}`;
    const before = await lab.row(task.id);
    expect(await here.engine.progress(task.nodeId, task.id, report)).toEqual({ cancel: true });
    expect(await here.engine.progress(await lab.newNode(), task.id, report)).toEqual({ cancel: true });
    expect(await lab.row(task.id)).toEqual(before);
  });

  it("TASK-09 waits over the changes in between when only the end is wanted", async () => {
    const task = await dispatched();
    let over = false;
    const end = there.engine.changed(task, { ...long, until: "end" }).then(() => {
      over = true;
    });
    const change = there.engine.changed(task, long);
    await here.engine.progress(task.nodeId, task.id, { generation: 1, phase: "half", timings: {} });
    await change;
    expect(over).toBe(false);
    await here.engine.results(task.nodeId, [ended(task.id, 1, "failed")]);
    await end;
    expect(over).toBe(true);
  });

  it("TASK-09 returns at once for a task that has changed or ended already, or does not exist", async () => {
    const task = await dispatched();
    await here.engine.changed({ id: task.id, revision: task.revision - 1 }, long);
    await here.engine.results(task.nodeId, [succeeded(task.id, 1)]);
    await here.engine.changed({ id: task.id, revision: undefined }, long);
    await here.engine.changed({ id: uuidv7(), revision: 1 }, long);
    expect((await lab.row(task.id)).status).toBe("completed");
  });

  it("TASK-09 ends when the time is over, or when the waiter disconnects", async () => {
    const task = await dispatched();
    await here.engine.changed(task, { waitMs: 5 });
    const gone = new AbortController();
    const abandoned = here.engine.changed(task, { ...long, signal: gone.signal });
    gone.abort();
    await abandoned;
    expect((await lab.row(task.id)).status).toBe("dispatched");
  });

  it("TASK-09 queries the database once for all awaited tasks, and finds changes whose signal was lost", async () => {
    const log = createLog({ process: "test", level: "silent" });
    const signals = await openSignals(lab.system, log);
    const looks: (readonly string[])[] = [];
    const read = (sql: Parameters<typeof selectRevisions>[0], ids: readonly string[]): Promise<Revision[]> => {
      looks.push(ids);
      return selectRevisions(sql, ids);
    };
    const awaiting = createAwaiting({ sql: lab.system, signals, log, topic: "task", read });
    atEnd(async () => {
      await awaiting.stop();
      await signals.stop();
    });
    const tasks = await Promise.all(Array.from({ length: 20 }, () => dispatched()));
    const waits = tasks.map((task) => awaiting.changed(task, long));
    await expect.poll(() => looks.length).toBeGreaterThan(1);
    expect(looks.every((ids) => ids.length === tasks.length)).toBe(true);
    // Changed without the engine, so that no signal is sent.
    await lab.superuser`UPDATE tasks SET revision = revision + 1 WHERE id = ANY (${tasks.map(({ id }) => id)}::uuid[])`;
    const before = looks.length;
    await Promise.all(waits);
    expect(looks.length).toBeLessThanOrEqual(before + 2);
  });
});

describe("batches", () => {
  const withRuns = (options: { atOnce: number; fail?: (items: string[]) => boolean }) => {
    const runs: string[][] = [];
    const gates: PromiseWithResolvers<void>[] = [];
    const batches = createBatches<string, string>({
      most: 3,
      atOnce: options.atOnce,
      keyOf: (item) => item[0] ?? "",
      concernsAll: (error) => (error as Error).message === "away",
      run: async (items) => {
        runs.push(items);
        const gate = Promise.withResolvers<void>();
        gates.push(gate);
        await gate.promise;
        if (options.fail?.(items)) throw new Error("impossible");
        return items.map((item) => item.toUpperCase());
      },
    });
    const open = async () => {
      await expect.poll(() => gates.length).toBeGreaterThan(0);
      gates.shift()?.resolve();
    };
    return { batches, runs, open };
  };

  it("TASK-02 collects what comes in one turn, and while another runs", async () => {
    const { batches, runs, open } = withRuns({ atOnce: 1 });
    const first = [batches.add("a"), batches.add("b")];
    await expect.poll(() => runs).toEqual([["a", "b"]]);
    const second = [batches.add("c"), batches.add("d"), batches.add("e"), batches.add("f")];
    await open();
    expect(await Promise.all(first)).toEqual(["A", "B"]);
    await open();
    await open();
    expect(await Promise.all(second)).toEqual(["C", "D", "E", "F"]);
    expect(runs).toEqual([["a", "b"], ["c", "d", "e"], ["f"]]);
    await batches.settled();
  });

  it("TASK-04 never runs two of one key together", async () => {
    const { batches, runs, open } = withRuns({ atOnce: 2 });
    const all = [batches.add("a1"), batches.add("a2"), batches.add("b1")];
    await expect.poll(() => runs).toEqual([["a1", "b1"]]);
    await open();
    await open();
    expect(await Promise.all(all)).toEqual(["A1", "A2", "B1"]);
    expect(runs).toEqual([["a1", "b1"], ["a2"]]);
  });

  it("TASK-04 repeats an item alone when another failed its batch", async () => {
    const { batches, runs, open } = withRuns({ atOnce: 1, fail: (items) => items.includes("bad") });
    const settled = Promise.allSettled([batches.add("good"), batches.add("bad"), batches.add("fine")]);
    for (let n = 0; n < 4; n += 1) await open();
    expect((await settled).map((one) => one.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(runs).toEqual([["good", "bad", "fine"], ["good"], ["bad"], ["fine"]]);
  });
});

describe("sweeping", () => {
  it("TASK-06 queues an idempotent task again and offers it as the next delivery, waking its node", async () => {
    const task = await dispatched("test.repeat");
    await lab.superuser`UPDATE tasks SET lease_until = now() WHERE id = ${task.id}`;
    const poll = there.engine.wait(task.nodeId, waiting({ holding: [{ task_id: uuidv7(), generation: 1 }] }));
    await poll;
    const next = there.engine.wait(task.nodeId, waiting({ room: 1 }));
    expect((await next).tasks[0]).toMatchObject({ task_id: task.id, generation: 1 });
    await lab.superuser`UPDATE tasks SET lease_until = now() WHERE id = ${task.id}`;
    const swept = await sweepTasks(lab.system, here.signals);
    expect(swept.requeued).toBeGreaterThanOrEqual(1);
    const [again] = (await there.engine.wait(task.nodeId, waiting({ room: 1 }))).tasks;
    expect(again).toMatchObject({ task_id: task.id, generation: 2 });
    expect(await here.engine.results(task.nodeId, [succeeded(task.id, 1, { done: true })])).toMatchObject([
      { verdict: "late" },
    ]);
    expect(await here.engine.results(task.nodeId, [succeeded(task.id, 2, { done: true })])).toMatchObject([
      { verdict: "accepted" },
    ]);
  });

  it("TASK-06 never requeues a task that must not run twice; it waits for the final result", async () => {
    const task = await dispatched("test.once");
    await lab.superuser`UPDATE tasks SET lease_until = now(), expires_at = now() WHERE id = ${task.id}`;
    await sweepTasks(lab.system, here.signals);
    expect((await lab.row(task.id)).status).toBe("dispatched");
    await lab.superuser`UPDATE tasks SET expires_at = now() - interval '91 seconds' WHERE id = ${task.id}`;
    const changed = there.engine.changed(task, long);
    await sweepTasks(lab.system, here.signals);
    await changed;
    expect(await lab.row(task.id)).toMatchObject({ status: "expired", failure: { code: "task_result_missing" } });
    // TASK-10: what the node did is kept, and does not become a failure.
    expect(await here.engine.results(task.nodeId, [succeeded(task.id, 1, { done: true })])).toMatchObject([
      { verdict: "late" },
    ]);
  });

  it("TASK-06 expires tasks that no node claimed, and reports that", async () => {
    const nodeId = await lab.newNode();
    const { id } = await lab.enqueue(here, { nodeId });
    await lab.superuser`UPDATE tasks SET expires_at = now() WHERE id = ${id}`;
    expect((await sweepTasks(lab.system, here.signals)).expired).toBeGreaterThanOrEqual(1);
    expect((await lab.row(id)).failure?.code).toBe("task_not_taken");
  });

  it("TASK-06 sweeps each task once when workers sweep together", async () => {
    const nodeId = await lab.newNode();
    for (let n = 0; n < 30; n += 1) await lab.enqueue(here, { nodeId });
    await lab.superuser`UPDATE tasks SET expires_at = now() WHERE node_id = ${nodeId}`;
    const swept = await Promise.all([1, 2, 3].map(() => sweepTasks(lab.system, here.signals)));
    expect(swept.reduce((sum, one) => sum + one.expired, 0)).toBe(30);
  });
});

describe("retention", () => {
  it("TASK-06 removes what ended long ago with its late results, and nothing that lives", async () => {
    const old = await dispatched();
    await here.engine.results(old.nodeId, [succeeded(old.id, 1)]);
    await lab.cancel(here, old.id);
    await here.engine.results(old.nodeId, [succeeded(old.id, 2)]);
    const recent = await dispatched();
    await here.engine.results(recent.nodeId, [succeeded(recent.id, 1)]);
    const living = await dispatched();
    // Ids contain the time: in 31 days they are all 31 days old.
    await lab.superuser`UPDATE tasks SET finished_at = now() + interval '5 days' WHERE id = ${recent.id}`;
    const now = new Date(Date.now() + 31 * 86_400_000);
    expect(await removeOldTasks(lab.system, { days: 30, now })).toBeGreaterThanOrEqual(1);
    const left =
      await lab.superuser`SELECT id FROM tasks WHERE id IN (${old.id}, ${recent.id}, ${living.id}) ORDER BY id`;
    expect(left.map((row) => row["id"])).toEqual([recent.id, living.id]);
    expect(await lab.superuser`SELECT FROM late_results WHERE task_id = ${old.id}`).toHaveLength(0);
    expect(await removeOldTasks(lab.system, { days: 30 })).toBe(0);
  });
});

describe("enqueueing", () => {
  const refusal = (task: Parameters<TaskLab["enqueue"]>[1]) =>
    lab.enqueue(here, task).then(
      () => "accepted",
      (error: { code: string; details: unknown }) => ({ code: error.code, details: error.details }),
    );

  it("TASK-01 refuses an unknown type, and names those there are", async () => {
    expect(await refusal({ nodeId: await lab.newNode(), type: "shell.run" })).toMatchObject({
      code: "task_type_unknown",
      details: { known: expect.arrayContaining(["node.noop"]) },
    });
  });

  it("TASK-07 refuses params that are not of the type's form, and names the fields", async () => {
    const nodeId = await lab.newNode();
    expect(await refusal({ nodeId, params: { hold_ms: -1, other: 1 } })).toMatchObject({
      code: "task_params_invalid",
      details: { fields: expect.arrayContaining([expect.objectContaining({ field: "params.hold_ms" })]) },
    });
  });

  it("TASK-07 asks for one of the type's capabilities in the last heartbeat", async () => {
    const type = "test.able";
    expect(await refusal({ nodeId: await lab.newNode(), type })).toMatchObject({ code: "capability_missing" });
    const other = await lab.newNode({ capabilities: ["pty"] });
    expect(await refusal({ nodeId: other, type })).toMatchObject({
      code: "capability_missing",
      details: { needed: ["os_users"] },
    });
    const able = await lab.newNode({ capabilities: ["pty", "os_users"] });
    expect((await lab.enqueue(here, { nodeId: able, type })).status).toBe("queued");
  });

  it("TASK-02 refuses a node that is not active, in another organization, or unknown", async () => {
    for (const status of ["enrolling", "draining", "quarantined", "retired"]) {
      expect(await refusal({ nodeId: await lab.newNode({ status }) })).toMatchObject({ code: "node_not_active" });
    }
    expect(await refusal({ nodeId: uuidv7() })).toMatchObject({ code: "not_found" });
    const nodeId = await lab.newNode();
    const foreign = withOrg(lab.app, uuidv7(), (tx) =>
      here.engine.enqueue(tx, { nodeId, type: "node.noop", params: {}, by: systemActor("x"), correlationId: "x" }),
    );
    await expect(foreign).rejects.toMatchObject({ code: "not_found" });
  });

  it("TASK-02 leaves no task behind when its producer's transaction fails", async () => {
    const nodeId = await lab.newNode();
    const failing = withOrg(lab.app, lab.orgId, async (tx) => {
      await here.engine.enqueue(tx, {
        nodeId,
        type: "node.noop",
        params: {},
        by: systemActor("x"),
        correlationId: "x",
      });
      throw new Error("the rest failed");
    });
    await expect(failing).rejects.toThrow("the rest failed");
    expect((await here.engine.wait(nodeId, atOnce())).tasks).toEqual([]);
  });
});

describe("without the database", () => {
  it("TASK-02 fails the polls with a code that is tried again, and serves them when it is back", async () => {
    const own = await openTaskLab();
    const replica = await own.newReplica();
    const nodeId = await own.newNode();
    await replica.engine.wait(await own.newNode(), atOnce());
    await setReachable(own.database, false);
    // Not a node that polls again at once: that would need no statement.
    const refused = await replica.engine.wait(nodeId, waiting()).then(
      () => "answered",
      () => "refused",
    );
    expect(refused).toBe("refused");
    await setReachable(own.database, true);
    const pool = openPool({ url: own.database.appUrl, role: "holdfast_app", application: "test", max: 1 });
    atEnd(() => pool.end({ timeout: 1 }));
    const task = await own.enqueue(replica, { nodeId });
    expect((await replica.engine.wait(nodeId, waiting())).tasks.map((one) => one.task_id)).toEqual([task.id]);
  });
});
