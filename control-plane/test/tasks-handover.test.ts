// Tasks that are created while their node waits: claimed as they are inserted and offered to the poll, or kept for the
// poll that follows in a moment. None may be lost when the node does not poll again.

import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { atOnce, openTaskLab, type Replica, succeeded, type TaskLab, waiting } from "../../testkit/api/tasks.ts";
import { systemActor } from "../src/audit/record.ts";

let lab: TaskLab;
let here: Replica;
let there: Replica;

beforeAll(async () => {
  lab = await openTaskLab();
  here = await lab.newReplica();
  there = await lab.newReplica();
});

type Run = { id: string; ended: ReturnType<Replica["engine"]["run"]> };

/** Resolves when the task is created. */
async function run(nodeId: string, type = "node.noop", replica = here): Promise<Run> {
  const correlationId = uuidv7();
  const task = { nodeId, type, params: {}, by: systemActor("test"), correlationId };
  const ended = replica.engine.run(task, { waitMs: 20_000 });
  const look = async () => {
    for (;;) {
      const found = await lab.superuser`SELECT FROM tasks WHERE correlation_id = ${correlationId}`;
      if (found.length > 0) return;
    }
  };
  await Promise.race([look(), ended]);
  return { id: await lab.idOf(correlationId), ended };
}

/** One transaction has one time. */
async function wasClaimedAsMade(taskId: string): Promise<boolean> {
  const [row] = await lab.superuser<{ same: boolean }[]>`
    SELECT created_at = dispatched_at AS same FROM tasks WHERE id = ${taskId}`;
  return row?.same ?? false;
}

const idsOf = (answer: { tasks: { task_id: string }[] }) => answer.tasks.map((task) => task.task_id);
const done = (nodeId: string, taskId: string) => here.engine.results(nodeId, [succeeded(taskId, 1)]);

/** A node that has just answered for a task, and is about to poll again. */
async function nodeBetweenPolls(): Promise<string> {
  const nodeId = await lab.newNode();
  const polling = here.engine.wait(nodeId, waiting());
  const { id } = await run(nodeId);
  expect(idsOf(await polling)).toEqual([id]);
  await done(nodeId, id);
  return nodeId;
}

describe("a task made while its node waits", () => {
  it("TASK-02 is claimed as it is created, and offered to the poll", async () => {
    const nodeId = await lab.newNode();
    const polling = here.engine.wait(nodeId, waiting());
    const { id, ended } = await run(nodeId);
    const { tasks } = await polling;
    expect(tasks).toMatchObject([{ task_id: id, node_id: nodeId, generation: 1, task_type: "node.noop" }]);
    expect(await lab.row(id)).toMatchObject({ status: "dispatched", generation: 1 });
    expect(await wasClaimedAsMade(id)).toBe(true);
    await done(nodeId, id);
    expect(await ended).toMatchObject({ id, status: "completed" });
  });

  it("TASK-02 is offered again, as the same delivery, when the response was lost", async () => {
    const nodeId = await lab.newNode();
    const lost = here.engine.wait(nodeId, waiting());
    const { id } = await run(nodeId);
    await lost;
    for (const replica of [here, there]) {
      const { tasks } = await replica.engine.wait(nodeId, atOnce());
      expect(tasks).toMatchObject([{ task_id: id, generation: 1 }]);
    }
  });

  it("TASK-02 waits in the queue when older tasks do, or its type keeps an order", async () => {
    const nodeId = await lab.newNode();
    const first = await lab.enqueue(here, { nodeId, type: "test.order" });
    expect(idsOf(await here.engine.wait(nodeId, atOnce()))).toEqual([first.id]);
    // Cannot be offered before the first has ended.
    const second = await lab.enqueue(here, { nodeId, type: "test.order" });
    const holding = [{ task_id: first.id, generation: 1 }];
    const polling = here.engine.wait(nodeId, waiting({ holding }));
    const { id } = await run(nodeId);
    expect(idsOf(await polling)).toEqual([id]);
    expect((await lab.row(second.id)).status).toBe("queued");
    expect(await wasClaimedAsMade(id)).toBe(false);
  });

  it("TASK-02 is not made for a node that is draining, whoever waits", async () => {
    const nodeId = await lab.newNode();
    const polling = here.engine.wait(nodeId, waiting());
    await lab.superuser`UPDATE nodes SET status = 'draining' WHERE id = ${nodeId}`;
    const task = { nodeId, type: "node.noop", params: {}, by: systemActor("test"), correlationId: uuidv7() };
    await expect(here.engine.run(task, { waitMs: 1 })).rejects.toMatchObject({ code: "node_not_active" });
    await here.engine.wait(nodeId, atOnce());
    expect(await polling).toEqual({ tasks: [], cancel: [] });
  });
});

describe("a task made while its node is between two polls", () => {
  it("TASK-02 is offered to the next poll", async () => {
    const nodeId = await nodeBetweenPolls();
    const { id, ended } = await run(nodeId);
    expect(idsOf(await here.engine.wait(nodeId, waiting()))).toEqual([id]);
    await done(nodeId, id);
    expect(await ended).toMatchObject({ status: "completed" });
  });

  it("TASK-02 is offered to the next poll also when the last one was empty, whoever created it at whichever replica", async () => {
    const makers = [
      async (nodeId: string) => (await run(nodeId)).id,
      async (nodeId: string) => (await run(nodeId, "node.noop", there)).id,
      async (nodeId: string) => (await lab.enqueue(here, { nodeId })).id,
      async (nodeId: string) => (await lab.enqueue(there, { nodeId })).id,
    ];
    for (const make of makers) {
      const nodeId = await lab.newNode();
      expect(idsOf(await here.engine.wait(nodeId, atOnce()))).toEqual([]);
      const id = await make(nodeId);
      expect(idsOf(await here.engine.wait(nodeId, waiting()))).toEqual([id]);
    }
  });

  it("TASK-02 is found by a poll at another replica, or of another process on the node", async () => {
    for (const poll of [
      (nodeId: string) => there.engine.wait(nodeId, waiting()),
      (nodeId: string) => here.engine.wait(nodeId, waiting({ instanceId: "another" })),
    ]) {
      const nodeId = await nodeBetweenPolls();
      const { id } = await run(nodeId);
      expect(idsOf(await poll(nodeId))).toEqual([id]);
    }
  });

  it("OPS-02 reaches a node that came back at another replica, and waits there already", async () => {
    const nodeId = await nodeBetweenPolls();
    const polling = there.engine.wait(nodeId, waiting({ instanceId: "back" }));
    // After the first statement, which ran before there was a task.
    await there.engine.wait(nodeId, atOnce());
    const { id } = await run(nodeId);
    expect(idsOf(await polling)).toEqual([id]);
  });

  it("TASK-09 is found when a tenant made it, also with a cancel of what the node holds", async () => {
    const node = await nodeBetweenPolls();
    const made = await lab.enqueue(here, { nodeId: node });
    expect(idsOf(await here.engine.wait(node, waiting()))).toEqual([made.id]);
    await lab.cancel(here, made.id);
    const holding = [{ task_id: made.id, generation: 1 }];
    expect(await here.engine.wait(node, waiting({ holding }))).toEqual({ tasks: [], cancel: [made.id] });
  });

  it("TASK-02 does not exceed the room that the next poll has", async () => {
    const node = await nodeBetweenPolls();
    const made = await Promise.all([run(node), run(node), run(node)]);
    const first = idsOf(await here.engine.wait(node, waiting({ room: 2 })));
    expect(first).toHaveLength(2);
    for (const id of first) await done(node, id);
    const rest = idsOf(await here.engine.wait(node, waiting({ room: 2 })));
    expect([...first, ...rest].sort()).toEqual(made.map((one) => one.id).sort());
  });
});
