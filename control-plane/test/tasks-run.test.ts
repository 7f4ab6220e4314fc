// Tasks that the control plane itself produces: enqueued with others, audited, and awaited in one go.

import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { atOnce, ended, openTaskLab, type Replica, succeeded, type TaskLab } from "../../testkit/api/tasks.ts";
import { systemActor } from "../src/audit/record.ts";

let lab: TaskLab;
let here: Replica;
let there: Replica;

beforeAll(async () => {
  lab = await openTaskLab();
  here = await lab.newReplica();
  there = await lab.newReplica();
});

const noop = (nodeId: string, params: unknown = {}) => ({
  nodeId,
  type: "node.noop",
  params,
  by: systemActor("reconciler"),
  correlationId: uuidv7(),
});
const long = { waitMs: 60_000 };

/** Takes the tasks of a node from one replica, and reports their results to another. */
async function work(nodeId: string, from: Replica, to: Replica): Promise<void> {
  const poll = {
    instanceId: uuidv7(),
    room: 32,
    holding: [],
    waitMs: 20_000,
    signal: new AbortController().signal,
  };
  const { tasks } = await from.engine.wait(nodeId, poll);
  const echo = (params: unknown) => (params as { echo?: string }).echo ?? null;
  await to.engine.results(
    nodeId,
    tasks.map((task) => succeeded(task.task_id, task.generation, { echo: echo(task.params) })),
  );
}

describe("running a task", () => {
  it("TASK-09 returns the result to the producer, whichever replicas the node polls and reports to", async () => {
    for (const [from, to] of [
      [here, here],
      [here, there],
      [there, here],
      [there, there],
    ] as const) {
      const nodeId = await lab.newNode();
      const [result] = await Promise.all([
        here.engine.run(noop(nodeId, { echo: "x" }), long),
        work(nodeId, from, to),
      ]);
      expect(result).toMatchObject({ status: "completed", result: { echo: "x" }, failure: null });
    }
  });

  it("TASK-08 writes an audit event for each, also when many are enqueued together", async () => {
    const nodeId = await lab.newNode();
    const many = Array.from({ length: 20 }, (_, index) => noop(nodeId, { echo: `number ${index}` }));
    const [results] = await Promise.all([
      Promise.all(many.map((task) => here.engine.run(task, long))),
      (async () => {
        for (;;) {
          await work(nodeId, here, here);
          const left =
            await lab.superuser`SELECT FROM tasks WHERE node_id = ${nodeId} AND finished_at IS NOT NULL`;
          if (left.length === many.length) return;
        }
      })(),
    ]);
    expect(results.map((one) => one?.result)).toEqual(many.map((task) => task.params));
    const events = await lab.superuser`
      SELECT a.target_id, a.correlation_id FROM audit_events a JOIN tasks t ON t.id::text = a.target_id
      WHERE t.node_id = ${nodeId} AND a.org_id = ${lab.orgId} AND a.actor_type = 'system'
        AND a.actor_name = 'reconciler' AND a.action = 'task.create' AND a.correlation_id = t.correlation_id`;
    expect(events).toHaveLength(many.length);
  });

  it("TASK-09 returns a failure as it was reported, and nothing when the time is over", async () => {
    expect(await here.engine.run(noop(await lab.newNode()), { waitMs: 20 })).toBeUndefined();
    const nodeId = await lab.newNode();
    const running = here.engine.run(noop(nodeId), long);
    const { tasks } = await here.engine.wait(nodeId, { ...atOnce(), room: 32, waitMs: 20_000 });
    await here.engine.results(
      nodeId,
      tasks.map((task) => ended(task.task_id, task.generation, "failed", "task_timed_out")),
    );
    expect(await running).toMatchObject({ status: "failed", failure: { code: "task_timed_out" } });
  });

  it("TASK-07 refuses one of many without harm to the others", async () => {
    const [good, gone] = [await lab.newNode(), await lab.newNode({ status: "draining" })];
    const outcomes = await Promise.allSettled([
      here.engine.run(noop(good), { waitMs: 1 }),
      here.engine.run(noop(gone), { waitMs: 1 }),
      here.engine.run(noop(uuidv7()), { waitMs: 1 }),
      here.engine.run({ ...noop(good), type: "test.able" }, { waitMs: 1 }),
      here.engine.run({ ...noop(good), type: "no.such" }, { waitMs: 1 }),
      here.engine.run(noop(good, { hold_ms: -1 }), { waitMs: 1 }),
    ]);
    expect(outcomes.map((one) => (one.status === "fulfilled" ? one.value : codeOf(one.reason)))).toEqual([
      undefined,
      "node_not_active",
      "not_found",
      "capability_missing",
      "task_type_unknown",
      "task_params_invalid",
    ]);
  });

  it.for([
    ["enrolling", "first heartbeat"],
    ["draining", "holdfast node reactivate"],
    ["quarantined", "holdfast node reactivate"],
    ["retired", "another node"],
  ] as const)("ID-09 says what makes a node that is %s work, if anything does", async ([status, nextStep]) => {
    const running = here.engine.run(noop(await lab.newNode({ status })), { waitMs: 1 });
    await expect(running).rejects.toMatchObject({
      code: "node_not_active",
      nextStep: expect.stringContaining(nextStep),
    });
  });

  it("TASK-03 names the node in each offer, so that the agent can report a misdirected one", async () => {
    const nodeId = await lab.newNode();
    await lab.enqueue(here, { nodeId });
    const { tasks } = await here.engine.wait(nodeId, atOnce());
    expect(tasks.map((task) => task.node_id)).toEqual([nodeId]);
  });

  it("TASK-02 leaves a node's history to pages: no statement of the queue can use its index", async () => {
    const [index] = await lab.superuser<{ indexdef: string }[]>`
      SELECT indexdef FROM pg_indexes WHERE indexname = 'tasks_of_node'`;
    expect(index?.indexdef).toContain("((node_id)::text)");
    const [plan] = await lab.superuser.begin(async (tx) => {
      await tx`SET LOCAL enable_seqscan = off`;
      return tx`EXPLAIN (FORMAT JSON) SELECT id FROM tasks WHERE node_id::text = ${uuidv7()} ORDER BY id DESC LIMIT 20`;
    });
    expect(JSON.stringify(plan), "pages do use it").toContain("tasks_of_node");
  });
});

function codeOf(error: unknown): string {
  return error instanceof ApiError ? error.code : String(error);
}
