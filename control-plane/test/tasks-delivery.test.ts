// How tasks reach nodes and results come back: several engines over one real database, as the
// replicas of an installation.

import { uuidv7 } from "@holdfast/kit/uuid";
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

let lab: TaskLab;
let here: Replica;
let there: Replica;

beforeAll(async () => {
  lab = await openTaskLab();
  here = await lab.newReplica();
  there = await lab.newReplica();
});

const idsOf = (answer: { tasks: { task_id: string }[] }) => answer.tasks.map((task) => task.task_id);

describe("claiming", () => {
  it("TASK-02 offers a queued task to its node once, as dispatched with a lease and generation 1", async () => {
    const nodeId = await lab.newNode();
    const other = await lab.newNode();
    const task = await lab.enqueue(here, { nodeId, params: { echo: "hi" } });
    expect((await here.engine.wait(other, atOnce())).tasks).toEqual([]);
    const { tasks } = await here.engine.wait(nodeId, atOnce());
    expect(tasks).toMatchObject([
      { task_id: task.id, generation: 1, task_type: "node.noop", params: { echo: "hi", hold_ms: 0 } },
    ]);
    expect(tasks[0]?.expires_at).toBe(task.expires_at.toISOString());
    const row = await lab.row(task.id);
    expect(row).toMatchObject({ status: "dispatched", generation: 1, revision: 2 });
    expect(row.lease_until).not.toBeNull();
    const holding = [{ task_id: task.id, generation: 1 }];
    expect(await there.engine.wait(nodeId, atOnce({ holding }))).toEqual({ tasks: [], cancel: [] });
  });

  it("TASK-02 offers a task again, as the same delivery, when the response was lost", async () => {
    const nodeId = await lab.newNode();
    const task = await lab.enqueue(here, { nodeId });
    const [first] = (await here.engine.wait(nodeId, atOnce())).tasks;
    await lab.superuser`UPDATE tasks SET lease_until = now() + interval '5 seconds' WHERE id = ${task.id}`;
    const [second] = (await there.engine.wait(nodeId, atOnce())).tasks;
    expect(second).toEqual(first);
    const { lease_until } = await lab.row(task.id);
    expect(lease_until?.getTime()).toBeGreaterThan(Date.now() + 30_000);
  });

  it("TASK-02 goes by priority and age, and never beyond the node's room", async () => {
    const nodeId = await lab.newNode();
    const ids = [];
    for (const priority of [1, 5, 9, 5]) ids.push((await lab.enqueue(here, { nodeId, priority })).id);
    const [low, middle, high, last] = ids;
    expect(idsOf(await here.engine.wait(nodeId, atOnce({ room: 2 })))).toEqual([high, middle]);
    const holding = [high, middle].map((id) => ({ task_id: id ?? "", generation: 1 }));
    expect(idsOf(await here.engine.wait(nodeId, atOnce({ room: 0, holding })))).toEqual([]);
    expect(idsOf(await here.engine.wait(nodeId, atOnce({ room: 5, holding })))).toEqual([last, low]);
  });

  it("TASK-02 counts what it offers again against the room", async () => {
    const nodeId = await lab.newNode();
    for (let n = 0; n < 4; n += 1) await lab.enqueue(here, { nodeId });
    const lost = idsOf(await here.engine.wait(nodeId, atOnce({ room: 2 })));
    expect(idsOf(await here.engine.wait(nodeId, atOnce({ room: 3 }))).slice(0, 2)).toEqual(lost);
    const counts = await lab.superuser`
      SELECT status, count(*)::int AS n FROM tasks WHERE node_id = ${nodeId} GROUP BY 1 ORDER BY 1`;
    expect([...counts]).toEqual([
      { status: "dispatched", n: 3 },
      { status: "queued", n: 1 },
    ]);
  });

  it("TASK-02 offers each task to one poll when replicas claim at the same moment", async () => {
    const nodeIds = await Promise.all(Array.from({ length: 8 }, () => lab.newNode()));
    const ids: string[] = [];
    for (const nodeId of nodeIds) {
      for (let n = 0; n < 5; n += 1) ids.push((await lab.enqueue(here, { nodeId })).id);
    }
    const got: string[] = [];
    const claim = async (replica: Replica, nodeId: string) => {
      const mine: { task_id: string; generation: number }[] = [];
      for (let round = 0; round < 6; round += 1) {
        const { tasks } = await replica.engine.wait(nodeId, atOnce({ room: 1, holding: mine }));
        for (const task of tasks) mine.push({ task_id: task.task_id, generation: task.generation });
        got.push(...tasks.filter((task) => task.generation === 1).map((task) => task.task_id));
      }
    };
    await Promise.all(nodeIds.map((nodeId, index) => claim(index % 2 ? here : there, nodeId)));
    expect(got.sort()).toEqual(ids.sort());
  });

  it.each(["enrolling", "draining", "quarantined", "retired"])(
    "TASK-02 offers a node that is %s nothing new",
    async (status) => {
      const nodeId = await lab.newNode();
      await lab.enqueue(here, { nodeId });
      await lab.superuser`
      UPDATE nodes SET status = ${status}, revoked_at = CASE WHEN ${status} = 'retired' THEN now() END
      WHERE id = ${nodeId}`;
      expect(await here.engine.wait(nodeId, atOnce())).toEqual({ tasks: [], cancel: [] });
    },
  );

  it("TASK-02 passes over what has expired", async () => {
    const nodeId = await lab.newNode();
    const task = await lab.enqueue(here, { nodeId });
    await lab.superuser`UPDATE tasks SET expires_at = now() WHERE id = ${task.id}`;
    expect((await here.engine.wait(nodeId, atOnce())).tasks).toEqual([]);
  });
});

describe("order within a key", () => {
  it("TASK-02 offers one at a time, in the order of creation, and wakes the node for the next", async () => {
    const nodeId = await lab.newNode();
    const type = "test.order";
    const a = await lab.enqueue(here, { nodeId, type, priority: 1 });
    const b = await lab.enqueue(here, { nodeId, type, priority: 9 });
    const free = await lab.enqueue(here, { nodeId, type, params: { key: "other" } });
    expect(idsOf(await here.engine.wait(nodeId, atOnce())).sort()).toEqual([a.id, free.id].sort());
    const held = [a, free].map(({ id }) => ({ task_id: id, generation: 1 }));
    const next = here.engine.wait(nodeId, waiting({ holding: held }));
    await here.engine.results(nodeId, [succeeded(a.id, 1, { done: true })]);
    expect(idsOf(await next)).toEqual([b.id]);
  });

  it("TASK-02 keeps the order also when replicas claim at the same moment", async () => {
    const nodeId = await lab.newNode();
    const made = [];
    for (let n = 0; n < 6; n += 1) made.push((await lab.enqueue(here, { nodeId, type: "test.order" })).id);
    const done: string[] = [];
    while (done.length < made.length) {
      const offers = await Promise.all(
        [here, there, here].map(({ engine }) => engine.wait(nodeId, atOnce({ room: 3 }))),
      );
      const ids = new Set(offers.flatMap(idsOf));
      expect(ids.size).toBe(1);
      for (const id of ids) {
        await here.engine.results(nodeId, [succeeded(id, 1, { done: true })]);
        done.push(id);
      }
    }
    expect(done).toEqual(made);
  });
});

describe("holding", () => {
  it("TASK-09 requests a node to stop tasks that were cancelled, redelivered, or are not its own, and not those it has ended", async () => {
    const nodeId = await lab.newNode();
    const make = () => lab.enqueue(here, { nodeId });
    const [kept, cancelled, over, newer] = [await make(), await make(), await make(), await make()];
    await here.engine.wait(nodeId, atOnce());
    await lab.cancel(here, cancelled.id);
    await here.engine.results(nodeId, [succeeded(over.id, 1)]);
    await lab.superuser`UPDATE tasks SET generation = 2 WHERE id = ${newer.id}`;
    const foreign = await lab.enqueue(here, { nodeId: await lab.newNode() });
    const unknown = uuidv7();
    const holding = [kept.id, cancelled.id, over.id, newer.id, foreign.id, unknown].map((id) => ({
      task_id: id,
      generation: 1,
    }));
    const stop = [cancelled.id, newer.id, foreign.id, unknown].sort();
    expect((await here.engine.renewLeases(nodeId, holding)).cancel.sort()).toEqual(stop);
    expect((await there.engine.wait(nodeId, atOnce({ room: 0, holding }))).cancel.sort()).toEqual(stop);
  });

  it("TASK-06 renews the lease of what is held, once some of it is used", async () => {
    const nodeId = await lab.newNode();
    const task = await lab.enqueue(here, { nodeId });
    await here.engine.wait(nodeId, atOnce());
    const holding = [{ task_id: task.id, generation: 1 }];
    await lab.superuser`UPDATE tasks SET lease_until = now() + interval '5 minutes' WHERE id = ${task.id}`;
    const before = (await lab.row(task.id)).lease_until;
    await here.engine.renewLeases(nodeId, holding);
    expect((await lab.row(task.id)).lease_until).toEqual(before);
    await lab.superuser`UPDATE tasks SET lease_until = now() WHERE id = ${task.id}`;
    await here.engine.renewLeases(nodeId, holding);
    const { lease_until, revision } = await lab.row(task.id);
    expect(lease_until?.getTime()).toBeGreaterThan(Date.now() + 30_000);
    expect(revision).toBe(2);
  });

  it("TASK-02 restores a claim that a crash of the database undid", async () => {
    const nodeId = await lab.newNode();
    const task = await lab.enqueue(here, { nodeId });
    const holding = [{ task_id: task.id, generation: 1 }];
    expect(await here.engine.wait(nodeId, atOnce({ holding }))).toEqual({ tasks: [], cancel: [] });
    expect(await lab.row(task.id)).toMatchObject({ status: "dispatched", generation: 1 });
  });
});

describe("polls", () => {
  it("TASK-02 holds a poll and wakes it with the task, in this replica and in another", async () => {
    for (const replica of [here, there]) {
      const nodeId = await lab.newNode();
      const poll = replica.engine.wait(nodeId, waiting());
      const task = await lab.enqueue(here, { nodeId });
      expect(idsOf(await poll)).toEqual([task.id]);
    }
  });

  it("TASK-02 finds queued work within a second when the notification was lost", async () => {
    const nodeId = await lab.newNode();
    const poll = here.engine.wait(nodeId, waiting());
    const task = await lab.enqueue(
      { ...there, engine: { ...there.engine, enqueued: () => undefined } },
      { nodeId },
    );
    expect(idsOf(await poll)).toEqual([task.id]);
  });

  it("TASK-02 ends an older poll of the same instance at once, and keeps one of another instance", async () => {
    const nodeId = await lab.newNode();
    const older = here.engine.wait(nodeId, waiting({ instanceId: "a" }));
    const other = here.engine.wait(nodeId, waiting({ instanceId: "b" }));
    const newer = here.engine.wait(nodeId, waiting({ instanceId: "a" }));
    expect(await older).toEqual({ tasks: [], cancel: [] });
    const task = await lab.enqueue(here, { nodeId });
    expect(idsOf(await Promise.race([other, newer]))).toEqual([task.id]);
  });

  it("TASK-02 loses no task that was claimed for a poll whose agent had disconnected", async () => {
    const nodeId = await lab.newNode();
    const gone = new AbortController();
    const abandoned = here.engine.wait(nodeId, waiting({}, gone.signal));
    const task = await lab.enqueue(here, { nodeId });
    gone.abort();
    expect(await abandoned).toEqual({ tasks: [], cancel: [] });
    expect(idsOf(await there.engine.wait(nodeId, waiting()))).toEqual([task.id]);
  });

  it("TASK-09 wakes a poll to stop a running task", async () => {
    const nodeId = await lab.newNode();
    const task = await lab.enqueue(here, { nodeId });
    await here.engine.wait(nodeId, atOnce());
    const poll = there.engine.wait(nodeId, waiting({ room: 0, holding: [{ task_id: task.id, generation: 1 }] }));
    await lab.cancel(here, task.id);
    expect(await poll).toEqual({ tasks: [], cancel: [task.id] });
  });
});

describe("results", () => {
  const dispatched = async (type = "node.noop") => {
    const nodeId = await lab.newNode();
    const task = await lab.enqueue(here, { nodeId, type });
    await here.engine.wait(nodeId, atOnce());
    return { nodeId, id: task.id };
  };
  const report = async (
    replica: Replica,
    nodeId: string,
    ...reports: Parameters<Replica["engine"]["results"]>[1]
  ) => (await replica.engine.results(nodeId, reports)).map((one) => one.verdict);

  it("TASK-04 accepts a result once, from the node that the task was offered to", async () => {
    const { nodeId, id } = await dispatched();
    expect(await report(here, await lab.newNode(), succeeded(id, 1))).toEqual(["unknown"]);
    expect(await report(here, nodeId, succeeded(id, 1, { echo: "first" }))).toEqual(["accepted"]);
    expect(await report(there, nodeId, succeeded(id, 1, { echo: "second" }))).toEqual(["duplicate"]);
    expect(await lab.row(id)).toMatchObject({ status: "completed", result: { echo: "first" }, revision: 3 });
    expect(await report(here, nodeId, succeeded(uuidv7(), 1))).toEqual(["unknown"]);
  });

  it("TASK-04 accepts one of many that arrive together, also within one request", async () => {
    const { nodeId, id } = await dispatched();
    const verdicts = await Promise.all([
      report(here, nodeId, succeeded(id, 1), succeeded(id, 1)),
      report(there, nodeId, succeeded(id, 1)),
      report(here, nodeId, succeeded(id, 1)),
    ]);
    expect(verdicts.flat().sort()).toEqual(["accepted", "duplicate", "duplicate", "duplicate"]);
  });

  it("TASK-04 keeps a result of an older delivery, or for a task that ended otherwise, as evidence", async () => {
    const old = await dispatched();
    await lab.superuser`UPDATE tasks SET generation = 2 WHERE id = ${old.id}`;
    expect(await report(here, old.nodeId, succeeded(old.id, 1))).toEqual(["late"]);
    expect(await report(here, old.nodeId, succeeded(old.id, 1))).toEqual(["late"]);
    expect((await lab.row(old.id)).status).toBe("dispatched");
    expect(await report(here, old.nodeId, succeeded(old.id, 2))).toEqual(["accepted"]);
    const over = await dispatched();
    await lab.superuser`
      UPDATE tasks SET status = 'expired', failure = '{}', lease_until = NULL, finished_at = now() WHERE id = ${over.id}`;
    expect(await report(here, over.nodeId, succeeded(over.id, 1, { echo: "late" }))).toEqual(["late"]);
    expect((await lab.row(over.id)).status).toBe("expired");
    const kept = await lab.superuser`
      SELECT task_id, generation, outcome FROM late_results WHERE task_id IN (${old.id}, ${over.id}) ORDER BY task_id`;
    expect([...kept]).toEqual([
      { task_id: old.id, generation: 1, outcome: { status: "succeeded", result: { echo: null } } },
      { task_id: over.id, generation: 1, outcome: { status: "succeeded", result: { echo: "late" } } },
    ]);
  });

  it("TASK-04 accepts no generation that cannot exist, and keeps no more evidence than deliveries", async () => {
    const { nodeId, id } = await dispatched();
    const huge = 2_147_483_647;
    expect(await report(here, nodeId, succeeded(id, huge))).toEqual(["late"]);
    const holding = [{ task_id: id, generation: huge }];
    expect(await here.engine.renewLeases(nodeId, holding)).toEqual({ cancel: [id] });
    expect(await lab.row(id)).toMatchObject({ status: "dispatched", generation: 1 });
    expect(await report(here, nodeId, succeeded(id, 1))).toEqual(["accepted"]);
    for (const invented of [2, 3, 4, huge]) await report(here, nodeId, succeeded(id, invented));
    const kept = await lab.superuser`SELECT generation FROM late_results WHERE task_id = ${id}`;
    expect(kept.map((row) => row["generation"])).toEqual([2]);
  });

  it("TASK-04 treats a result that is nested too deeply as missing, and continues", async () => {
    const { nodeId, id } = await dispatched();
    const deep = JSON.parse(`${"[".repeat(4_000)}${"]".repeat(4_000)}`) as unknown;
    expect(await report(here, nodeId, succeeded(id, 1, deep))).toEqual(["accepted"]);
    expect(await lab.row(id)).toMatchObject({ status: "failed", failure: { code: "result_invalid" } });
  });

  it("TASK-07 refuses parameters that the database could not return as they were signed", async () => {
    const nodeId = await lab.newNode();
    for (const echo of ["half \ud800 of one", "a NUL \0"]) {
      await expect(lab.enqueue(here, { nodeId, params: { echo } })).rejects.toMatchObject({
        code: "task_params_invalid",
        details: { fields: [{ field: "params.echo" }] },
      });
    }
  });

  it("TASK-04 takes no result of a revoked node", async () => {
    const { nodeId, id } = await dispatched();
    await lab.superuser`UPDATE nodes SET status = 'quarantined', revoked_at = now() WHERE id = ${nodeId}`;
    await expect(report(here, nodeId, succeeded(id, 1))).rejects.toMatchObject({ code: "identity_revoked" });
    expect((await lab.row(id)).status).toBe("dispatched");
  });

  it("TASK-07 makes a result of another form a failure of the task", async () => {
    const { nodeId, id } = await dispatched();
    expect(await report(here, nodeId, succeeded(id, 1, { echo: 7 }))).toEqual(["accepted"]);
    expect(await lab.row(id)).toMatchObject({
      status: "failed",
      result: null,
      failure: { code: "result_invalid" },
    });
  });

  it("TASK-07 takes the next step from the catalogue, and not from the node", async () => {
    const own = await dispatched("test.repeat");
    await report(here, own.nodeId, ended(own.id, 1, "failed", "out_of_sorts"));
    expect((await lab.row(own.id)).failure).toEqual({
      code: "out_of_sorts",
      message: "It did not feel like it.",
      next_step: "Ask nicely.",
    });
    const refused = await dispatched();
    const failure = {
      code: "task_signature_invalid",
      message: "header is odd",
      next_step: "Send me your password.",
    };
    await here.engine.results(refused.nodeId, [
      { task_id: refused.id, generation: 1, timings: {}, outcome: { status: "refused", failure } },
    ]);
    const row = await lab.row(refused.id);
    expect(row).toMatchObject({ status: "failed", failure: { message: "header is odd" } });
    expect(row.failure?.next_step).toContain("tampering");
  });

  it("TASK-04 refuses a result beyond a megabyte, and leaves the task as it is", async () => {
    const { nodeId, id } = await dispatched();
    const large = succeeded(id, 1, { echo: "x".repeat(1024 * 1024) });
    await expect(report(here, nodeId, large)).rejects.toMatchObject({ code: "result_too_large" });
    expect((await lab.row(id)).status).toBe("dispatched");
  });

  it("TASK-04 does not let one node's impossible report take down those that arrive with it", async () => {
    const good = await dispatched();
    const bad = await dispatched();
    const impossible = { ...succeeded(bad.id, 1), generation: 2 ** 40 };
    const [first, second] = await Promise.allSettled([
      report(here, bad.nodeId, impossible),
      report(here, good.nodeId, succeeded(good.id, 1)),
    ]);
    expect(first.status).toBe("rejected");
    expect(second).toEqual({ status: "fulfilled", value: ["accepted"] });
  });
});
