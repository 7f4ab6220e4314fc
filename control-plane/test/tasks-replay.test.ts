// Tasks that are run again because they got no result.

import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { explainNode } from "@holdfast/contracts/endpoints/drift";
import { createTask, getTask, replayTask } from "@holdfast/contracts/endpoints/tasks";
import { offeredAction } from "@holdfast/contracts/words/actions";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { observeSwept } from "../src/drift/observers/tasks.ts";
import { sweepTasks } from "../src/tasks/sweep.ts";

let api: TestApi;
let org: TestOrg;
let system: Sql;
let superuser: Sql;
let node: TestNode;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  org = await createOrg(api, "replayed");
  node = await enrollTestNode(api, org.id);
  await sendHeartbeatFrom(node);
});

const client = () => api.operator(org.id);
const run = (echo = "same") =>
  client()(createTask, {
    params: { node_id: node.id },
    body: { type: "node.noop", params: { echo }, priority: 7 },
  });
const replay = (id: string) => client()(replayTask, { params: { task_id: id } });
const publish = () => undefined;
const sweep = () => sweepTasks(system, { publish }, observeSwept({ system, signals: { publish } }));
const take = () => node.client.ask({ path: node.path("tasks/wait?wait=25&room=4") });
const expire = ({ id }: { id: string }) =>
  superuser`UPDATE tasks SET expires_at = now() - interval '1 second' WHERE id = ${id}`;

describe("a replay", () => {
  it("DRIFT-04 of a task that expired is a new one with the same content, and leaves the old one as it is", async () => {
    const old = await run();
    await expire(old);
    await sweep();
    const made = await replay(old.id);
    expect(made).toMatchObject({
      ...{ type: "node.noop", params: old.params, priority: 7, status: "queued", replays: old.id },
      created_by: "local operator",
    });
    expect(await client()(getTask, { params: { task_id: old.id } })).toMatchObject({
      status: "expired",
      replays: null,
    });
    const { items } = await client()(listAudit, { query: { action: "task.replay" } });
    expect(items).toMatchObject([{ target_id: made.id, result: "allowed", details: { replays: old.id } }]);
    await expect(replay(old.id)).rejects.toMatchObject({
      envelope: { code: "task_not_replayable", next_step: expect.stringContaining(made.id) },
    });
    await take();
  });

  it("TASK-04 is created once by many at a time", async () => {
    const old = await run();
    await expire(old);
    await sweep();
    // All of them wait for the task before they look for another replay of it.
    const [held, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holding = superuser.begin(async (tx) => {
      await tx`SELECT FROM tasks WHERE id = ${old.id} FOR UPDATE`;
      held.resolve();
      await free.promise;
    });
    await held.promise;
    const asked = Promise.allSettled(Array.from({ length: 3 }, () => replay(old.id)));
    const waiting = () => superuser<{ count: number }[]>`
      SELECT count(*)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
    await expect
      .poll(waiting)
      .toEqual([{ count: 3 }])
      .finally(free.resolve);
    await holding;
    const all = await asked;
    const codes = all.map((one) => (one.status === "fulfilled" ? "created" : one.reason.envelope?.code));
    expect(codes.toSorted()).toEqual(["created", "task_not_replayable", "task_not_replayable"]);
    await take();
  });

  it("TASK-04 is refused while the task is queued or with its node, and for what must not run twice", async () => {
    const queued = await run();
    await expect(replay(queued.id)).rejects.toMatchObject({ envelope: { code: "task_not_replayable" } });
    await take();
    await expect(replay(queued.id)).rejects.toMatchObject({
      envelope: { message: "The node is working on the task." },
    });
    await superuser`UPDATE tasks SET lease_until = now() - interval '1 second', idempotent = false WHERE id = ${queued.id}`;
    await expect(replay(queued.id)).rejects.toMatchObject({
      envelope: { message: expect.stringContaining("must not run twice") },
    });
    await superuser`UPDATE tasks SET idempotent = true WHERE id = ${queued.id}`;
    expect((await replay(queued.id)).replays).toBe(queued.id);
  });

  it("SEC-01 of another organization's task is as of one that does not exist", async () => {
    const other = await createOrg(api, "elsewhere");
    const { id } = await run();
    const theirs = api.operator(other.id)(replayTask, { params: { task_id: id } });
    await expect(theirs).rejects.toMatchObject({ envelope: { code: "not_found" } });
  });

  it("DASH-08 DRIFT-04 is offered for the task whose result did not arrive", async () => {
    const fresh = await enrollTestNode(api, org.id);
    await sendHeartbeatFrom(fresh);
    const { id } = await client()(createTask, { params: { node_id: fresh.id }, body: { type: "node.noop" } });
    await fresh.client.ask({ path: fresh.path("tasks/wait?wait=25&room=4") });
    await superuser`UPDATE tasks SET lease_until = now() - interval '1 second' WHERE id = ${id}`;
    await sweep();
    const explained = await client()(explainNode, { params: { node_id: fresh.id } });
    const [cause] = explained.causes;
    expect(cause).toMatchObject({ reason: "node_task_result_post_failed", next_action: "replay_task" });
    expect(cause && offeredAction(cause, explained)).toMatchObject({
      taskId: id,
      command: `holdfast task replay ${id}`,
    });
  });
});
