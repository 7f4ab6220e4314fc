// Secrets of tasks travel beside their params: stored sealed with the id of their task, and erased when it ends.

import { beforeAll, describe, expect, it } from "vitest";
import { atOnce, openTaskLab, type Replica, succeeded, type TaskLab } from "../../testkit/api/tasks.ts";
import { withOrg } from "../src/database/connect.ts";
import { expireUndelivered, settleLapsedLeases } from "../src/tasks/transitions/expire.ts";

const KEY = "k3y-of-this-task";
const secret = { type: "test.secret", secrets: { key: KEY } };
const secretOnce = { type: "test.secret_once", secrets: { key: KEY } };

let lab: TaskLab;
let here: Replica;
let there: Replica;

beforeAll(async () => {
  lab = await openTaskLab();
  here = await lab.newReplica();
  there = await lab.newReplica();
});

async function sealedOf(taskId: string): Promise<Buffer | null> {
  const [row] = await lab.superuser<{ sealed_secrets: Buffer | null }[]>`
    SELECT sealed_secrets FROM tasks WHERE id = ${taskId}`;
  return row?.sealed_secrets ?? null;
}

/** Every row of the table as text. */
async function tasksAsText(): Promise<string> {
  const rows = await lab.superuser<{ row: string }[]>`SELECT to_jsonb(t)::text AS row FROM tasks t`;
  return rows.map(({ row }) => row).join("\n");
}

describe("secrets of a task", () => {
  it("TASK-05 are offered beside the params, also again by another replica, and stored only sealed", async () => {
    const nodeId = await lab.newNode();
    const task = await lab.enqueue(here, { nodeId, ...secret });
    expect(JSON.stringify(task)).not.toContain(KEY);
    for (const { engine } of [here, there]) {
      const { tasks } = await engine.wait(nodeId, atOnce());
      expect(tasks).toMatchObject([{ task_id: task.id, params: { key: "k" }, secrets: { key: KEY } }]);
    }
    const sealed = await sealedOf(task.id);
    expect(sealed?.length).toBeGreaterThan(KEY.length);
    const stored = await tasksAsText();
    for (const form of [KEY, Buffer.from(KEY).toString("hex"), Buffer.from(KEY).toString("base64")]) {
      expect(stored).not.toContain(form);
    }
  });

  it("TASK-05 reach a node that waits when the task is created alone", async () => {
    const nodeId = await lab.newNode();
    const polled = here.engine.wait(nodeId, { ...atOnce(), waitMs: 30_000 });
    const by = { actor_type: "system" as const, actor_id: null, actor_name: "test", role: "system" as const };
    await here.engine.start({ nodeId, ...secret, params: {}, by, correlationId: "corr-secret" });
    expect((await polled).tasks).toMatchObject([{ secrets: { key: KEY } }]);
  });

  it("TASK-05 of other tasks are absent", async () => {
    const nodeId = await lab.newNode();
    await lab.enqueue(here, { nodeId });
    const [offer] = (await here.engine.wait(nodeId, atOnce())).tasks;
    expect(offer).not.toHaveProperty("secrets");
  });

  it("TASK-05 that were moved to another task are not opened: it is offered without them", async () => {
    const nodeId = await lab.newNode();
    const [one, other] = [
      await lab.enqueue(here, { nodeId, ...secret }),
      await lab.enqueue(here, { nodeId, ...secret, secrets: { key: "another-k3y" } }),
    ];
    await lab.superuser`UPDATE tasks SET sealed_secrets = ${await sealedOf(other.id)} WHERE id = ${one.id}`;
    const { tasks } = await here.engine.wait(nodeId, atOnce({ room: 5 }));
    const offered = Object.fromEntries(tasks.map((task) => [task.task_id, task.secrets]));
    expect(offered).toEqual({ [one.id]: undefined, [other.id]: { key: "another-k3y" } });
  });

  it.for([
    ["missing", undefined, "secrets.key"],
    ["empty", { key: "" }, "secrets.key"],
    ["more than the type declares", { key: KEY, extra: "ext-value" }, "secrets.extra"],
  ] as const)("TASK-05 are refused when they are %s, without their values", async ([, secrets, field]) => {
    const nodeId = await lab.newNode();
    const refused = await lab
      .enqueue(here, { nodeId, type: "test.secret", ...(secrets ? { secrets } : {}) })
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "task_params_invalid", details: { fields: [{ field }] } });
    expect(JSON.stringify(refused)).not.toMatch(/k3y|ext-value/);
  });
});

describe("secrets of a task that has ended", () => {
  const dispatched = async (task: object) => {
    const nodeId = await lab.newNode();
    const { id } = await lab.enqueue(here, { nodeId, ...secret, ...task });
    await here.engine.wait(nodeId, atOnce());
    expect(await sealedOf(id)).not.toBeNull();
    return { nodeId, id };
  };

  it("TASK-05 are erased with its result", async () => {
    const { nodeId, id } = await dispatched({});
    await here.engine.results(nodeId, [succeeded(id, 1, { done: true })]);
    expect([await sealedOf(id), (await lab.row(id)).status]).toEqual([null, "completed"]);
  });

  it("TASK-05 are erased with results that come together", async () => {
    const nodeId = await lab.newNode();
    const ids = [];
    for (let n = 0; n < 2; n += 1) ids.push((await lab.enqueue(here, { nodeId, ...secret })).id);
    await here.engine.wait(nodeId, atOnce({ room: 2 }));
    await here.engine.results(
      nodeId,
      ids.map((id) => succeeded(id, 1, { done: true })),
    );
    expect(await Promise.all(ids.map(sealedOf))).toEqual([null, null]);
  });

  it("TASK-05 are erased when it is cancelled before it was delivered, and kept while its node is asked to stop", async () => {
    const nodeId = await lab.newNode();
    const { id } = await lab.enqueue(here, { nodeId, ...secret });
    await lab.cancel(here, id);
    expect(await sealedOf(id)).toBeNull();
    const running = await dispatched({});
    await lab.cancel(here, running.id);
    expect(await sealedOf(running.id)).not.toBeNull();
  });

  it("TASK-05 are erased when it expires, and kept when it is queued again", async () => {
    const nodeId = await lab.newNode();
    const { id } = await lab.enqueue(here, { nodeId, ...secret });
    const again = await dispatched({});
    await lab.superuser`
      UPDATE tasks SET expires_at = CASE WHEN id = ${id} THEN now() ELSE expires_at END, lease_until =
        CASE WHEN id = ${again.id} THEN now() ELSE lease_until END WHERE id IN (${id}, ${again.id})`;
    await expireUndelivered(lab.system, 100);
    await settleLapsedLeases(lab.system, 100);
    expect([(await lab.row(id)).status, await sealedOf(id)]).toEqual(["expired", null]);
    expect((await lab.row(again.id)).status).toBe("queued");
    expect((await here.engine.wait(again.nodeId, atOnce())).tasks).toMatchObject([{ secrets: { key: KEY } }]);
    await lab.superuser`
      UPDATE tasks SET expires_at = now() - interval '1 hour', lease_until = now() WHERE id = ${again.id}`;
    await settleLapsedLeases(lab.system, 100);
    expect(await sealedOf(again.id)).toBeNull();
  });

  it("TASK-05 are erased as soon as one that must not run twice has begun", async () => {
    const progress = { generation: 1, phase: "begun", timings: {} };
    const once = await dispatched(secretOnce);
    const repeatable = await dispatched({});
    for (const { nodeId, id } of [once, repeatable]) await here.engine.progress(nodeId, id, progress);
    expect([await sealedOf(once.id), await sealedOf(repeatable.id)]).toEqual([null, expect.any(Buffer)]);
  });

  it("TASK-05 cannot stay: the database refuses an ended task that has some", async () => {
    const { id } = await dispatched({});
    await expect(
      withOrg(lab.app, lab.orgId, (tx) => tx`UPDATE tasks SET finished_at = now() WHERE id = ${id}`),
    ).rejects.toThrow(/check constraint/);
  });
});
