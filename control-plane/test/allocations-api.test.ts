// Allocations over HTTP: who may ask for what, and how one that waits learns of the end. The node's
// side is another replica's engine, so that every answer crosses between two of them.

import { CallError, type Client } from "@holdfast/contracts/client";
import {
  type Allocation,
  createAllocation,
  createAllocationGrant,
  getAllocation,
  listAllocations,
  releaseAllocation,
  repairAllocation,
} from "@holdfast/contracts/endpoints/allocations";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { createProject, deleteProject, listProjects } from "@holdfast/contracts/endpoints/projects";
import { getTask } from "@holdfast/contracts/endpoints/tasks";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import {
  addMember,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
  tokenFor,
} from "../../testkit/api/api.ts";
import { answerTasks, insertNode, openReplica, type Replica, type TestNode } from "../../testkit/api/replica.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";

let api: TestApi;
let superuser: Sql;
let replica: Replica;
let kelp: TestOrg;
let client: Client;
let node: TestNode;
let oldestProject: string;

beforeAll(async () => {
  api = await startTestApi();
  const roles = openRoles(api.database);
  superuser = roles.superuser;
  replica = await openReplica(api.database, roles.system);
  kelp = await createOrg(api, "kelp");
  client = api.as(await tokenFor(api, kelp, "member"));
  const owner = api.as(await tokenFor(api, kelp, "owner"));
  [oldestProject = ""] = (await owner(listProjects, {})).items.map(({ id }) => id);
  await owner(createProject, { body: { slug: "second", name: "Second" } });
  node = await insertNode(superuser, kelp.id, { name: "reef-1" });
});

const key = `ssh-ed25519 ${Buffer.alloc(51, 1).toString("base64")} somebody@somewhere`;

const ask = (username: string, more: { node_id?: string; project_id?: string; ssh_keys?: string[] } = {}) =>
  client(createAllocation, { body: { node_id: node.id, username, ...more } });

const refusal = async (asked: Promise<unknown>) => {
  const error = await asked.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof CallError)) throw new Error(`not refused: ${error}`);
  return { status: error.status, code: error.envelope.code, details: error.envelope.details };
};

/** As the node does it, with what its agent would say. */
const nodeAnswers = (on = node, options: { ownAccount?: boolean } = {}) =>
  answerTasks(replica, on, ({ task_type, params: { username } }) => ({
    status: "succeeded",
    result:
      task_type === "allocation.provision_user"
        ? {
            ...{ username, uid: 70_000, gid: 70_000, home: `/home/${username}`, shell: "/bin/sh" },
            ...{ created: true, own_account: options.ownAccount === true, keys: 0 },
          }
        : { username, removed: true, own_account: options.ownAccount === true, ended_processes: 0 },
  }));

async function waitUntil(status: Allocation["status"], from: Allocation, as = client): Promise<Allocation> {
  let seen = from;
  while (seen.status !== status) {
    const query = { wait_seconds: 25, revision: seen.revision };
    seen = await as(getAllocation, { params: { allocation_id: from.id }, query });
  }
  return seen;
}

describe("asking for a user", () => {
  it("BM-01 gives a task to the node in the same breath, and tells who waits when the user is there", async () => {
    const asked = await ask("anna", { ssh_keys: [key] });
    expect(asked).toMatchObject({ status: "requested", username: "anna", node_name: "reef-1", revision: 1 });
    expect(asked.project_id).toBe(oldestProject);
    const task = await client(getTask, { params: { task_id: asked.task_id ?? "" } });
    expect(task).toMatchObject({ type: "allocation.provision_user", status: "queued", node_id: node.id });
    expect(task.params).toEqual({ allocation_id: asked.id, username: "anna", ssh_keys: [key] });
    const trail = await superuser`
      SELECT action FROM audit_events WHERE correlation_id = ${task.correlation_id} ORDER BY action`;
    expect(trail.map((event) => event["action"])).toEqual(["allocation.create", "task.create"]);
    const [active] = await Promise.all([waitUntil("active", asked), nodeAnswers()]);
    expect(active).toMatchObject({ status: "active", home: "/home/anna", own_account: false, reason: null });
  });

  it("BM-03 makes one allocation of two requests for the same user at once", async () => {
    const outcomes = await Promise.allSettled([ask("berta"), ask("berta"), ask("berta")]);
    const made = outcomes.filter((one) => one.status === "fulfilled");
    expect(made.length).toBe(1);
    const { details, ...again } = await refusal(ask("berta"));
    expect(again).toEqual({ status: 409, code: "allocation_exists" });
    expect(details).toEqual({ allocation: made[0]?.value.id, status: "requested" });
    const tasks = await superuser`SELECT FROM tasks WHERE params ->> 'username' = 'berta'`;
    expect(tasks.length, "no task without its allocation").toBe(1);
    await nodeAnswers();
  });

  it("BM-03 repeats the answer for the same idempotency key", async () => {
    const body = { node_id: node.id, username: "carla" };
    const once = await client(createAllocation, { body, idempotencyKey: "carla-1" });
    expect(await client(createAllocation, { body, idempotencyKey: "carla-1" })).toEqual(once);
    await nodeAnswers();
  });

  it("BM-03 refuses what is not there, or not theirs, as not found", async () => {
    const other = await createOrg(api, "other");
    const foreign = await insertNode(superuser, other.id, { name: "abroad" });
    const owner = api.as(await tokenFor(api, other, "owner"));
    const { id: project_id } = await owner(createProject, { body: { slug: "theirs", name: "Theirs" } });
    for (const more of [
      { node_id: uuidv7() },
      { node_id: foreign.id },
      { project_id: uuidv7() },
      { project_id },
    ]) {
      expect(await refusal(ask("dora", more))).toMatchObject({ status: 404, code: "not_found" });
    }
  });

  it.for(["draining", "quarantined", "enrolling"])("BM-03 refuses a node that is %s", async (status) => {
    const away = await insertNode(superuser, kelp.id, { name: `reef-${status}` });
    await superuser`UPDATE nodes SET status = ${status} WHERE id = ${away.id}`;
    expect(await refusal(ask("emma", { node_id: away.id }))).toEqual({
      status: 409,
      code: "node_not_active",
      details: { node: away.name, status },
    });
  });

  it("BM-01 offers the agent's own account, and no other, where the agent has no root", async () => {
    const rootless = await insertNode(superuser, kelp.id, {
      name: "laptop",
      capabilities: ["own_account"],
      account: "olaf",
    });
    expect(await refusal(ask("frida", { node_id: rootless.id }))).toEqual({
      status: 409,
      code: "own_account_only",
      details: { account: "olaf" },
    });
    const asked = await ask("olaf", { node_id: rootless.id });
    const [active] = await Promise.all([waitUntil("active", asked), nodeAnswers(rootless, { ownAccount: true })]);
    expect(active).toMatchObject({ status: "active", own_account: true });
  });

  it.for(["Root", "1st", "a".repeat(32), "a b", "../etc", ""])(
    "BM-01 refuses %j as a user name",
    async (username) => {
      expect(await refusal(ask(username))).toMatchObject({ status: 400, code: "invalid_request" });
    },
  );

  it("BM-01 refuses a key with options, which could run commands", async () => {
    const ssh_keys = [`command="/bin/rm" ${key}`];
    expect(await refusal(ask("gerda", { ssh_keys }))).toMatchObject({ status: 400, code: "invalid_request" });
  });

  it("BM-03 needs a project", async () => {
    const empty = await createOrg(api, "empty");
    const theirNode = await insertNode(superuser, empty.id, { name: "reef-9" });
    const owner = api.as(await tokenFor(api, empty, "owner"));
    for (const { id } of (await owner(listProjects, {})).items) {
      await owner(deleteProject, { params: { project_id: id } });
    }
    const asked = owner(createAllocation, { body: { node_id: theirNode.id, username: "hanna" } });
    expect(await refusal(asked)).toMatchObject({ status: 400, code: "project_required" });
  });
});

describe("a project with allocations", () => {
  it("BM-03 cannot be deleted, and says why", async () => {
    const owner = api.as(await tokenFor(api, kelp, "owner"));
    const deleted = owner(deleteProject, { params: { project_id: oldestProject } });
    expect(await refusal(deleted)).toMatchObject({ status: 409, code: "conflict" });
  });
});

describe("repairing it", () => {
  const repair = (allocation_id: string, as = client) => as(repairAllocation, { params: { allocation_id } });

  it("BM-01 gives the node one task with the user's keys, and the allocation stays active", async () => {
    const asked = await ask("lena", { ssh_keys: [key] });
    expect(await refusal(repair(asked.id)), "while it is created").toMatchObject({
      ...{ status: 409, code: "allocation_not_active", details: { status: "requested" } },
    });
    const [active] = await Promise.all([waitUntil("active", asked), nodeAnswers()]);
    const task = await repair(asked.id);
    expect(task).toMatchObject({ type: "allocation.repair_user", status: "queued", node_id: node.id });
    expect(task.params).toEqual({ allocation_id: asked.id, username: "lena", ssh_keys: [key] });
    const after = await client(getAllocation, { params: { allocation_id: asked.id } });
    expect(after).toEqual({ ...active, task_id: task.id, revision: active.revision + 1 });
    const trail = await superuser`
      SELECT action, target_id, details ->> 'task_id' AS task FROM audit_events
      WHERE correlation_id = ${task.correlation_id} ORDER BY action`;
    expect(trail).toEqual([
      { action: "allocation.repair", target_id: asked.id, task: task.id },
      { action: "task.create", target_id: task.id, task: null },
    ]);
    const failure = { code: "uid_taken", message: "The uid is mallory's.", next_step: "n" };
    await answerTasks(replica, node, () => ({ status: "failed", failure }));
    expect(await client(getTask, { params: { task_id: task.id } })).toMatchObject({ status: "failed", failure });
    expect(await client(getAllocation, { params: { allocation_id: asked.id } })).toMatchObject({
      status: "active",
    });
    await client(releaseAllocation, { params: { allocation_id: asked.id } });
    expect(await refusal(repair(asked.id))).toMatchObject({ details: { status: "releasing" } });
    await nodeAnswers();
  });

  it("BM-01 is for those who may use it; to others it looks unknown", async () => {
    const member = (name: string) => addMember(api, kelp, `${name}@kelp.example`, "member");
    const [ada, bob, eve] = await Promise.all([member("rada"), member("rbob"), member("reve")]);
    const hers = ada.client(kelp.id);
    const asked = await hers(createAllocation, { body: { node_id: node.id, username: "mina" } });
    await Promise.all([waitUntil("active", asked, hers), nodeAnswers()]);
    const share = (level: "view" | "use") =>
      hers(createAllocationGrant, {
        params: { allocation_id: asked.id },
        body: { user_id: bob.me.id ?? "", level },
      });
    const stranger = api.as(await tokenFor(api, await createOrg(api, "repairers"), "owner"));
    const unknown = await refusal(repair(uuidv7()));
    expect(unknown).toMatchObject({ status: 404, code: "not_found" });
    for (const as of [stranger, eve.client(kelp.id), bob.client(kelp.id)])
      expect(await refusal(repair(asked.id, as))).toEqual(unknown);
    await share("view");
    expect(await refusal(repair(asked.id, bob.client(kelp.id)))).toMatchObject({ status: 403, code: "forbidden" });
    await share("use");
    const task = await repair(asked.id, bob.client(kelp.id));
    expect((await bob.client(kelp.id)(getTask, { params: { task_id: task.id } })).id).toBe(task.id);
    await nodeAnswers();
  });

  it("BM-01 is refused where the node takes no work", async () => {
    const asked = await ask("nora");
    await Promise.all([waitUntil("active", asked), nodeAnswers()]);
    await superuser`UPDATE nodes SET status = 'draining' WHERE id = ${node.id}`;
    expect(await refusal(repair(asked.id))).toMatchObject({ status: 409, code: "node_not_active" });
    await superuser`UPDATE nodes SET status = 'active' WHERE id = ${node.id}`;
  });
});

describe("giving it back", () => {
  it("BM-02 removes the user, and repeated changes nothing", async () => {
    const asked = await ask("ines");
    await Promise.all([waitUntil("active", asked), nodeAnswers()]);
    const release = () => client(releaseAllocation, { params: { allocation_id: asked.id } });
    const releasing = await release();
    expect(releasing).toMatchObject({ status: "releasing", reason: null });
    expect(await release()).toEqual(releasing);
    const [released] = await Promise.all([waitUntil("released", releasing), nodeAnswers()]);
    expect(released).toMatchObject({ released_at: expect.stringMatching(/^\d{4}-/), removal: "removed" });
    expect(await release()).toEqual(released);
    const again = await ask("ines");
    expect(again.id, "the name is free again").not.toBe(asked.id);
    await nodeAnswers();
  });

  it("BM-02 of what was not begun cancels it, and removes behind it", async () => {
    const asked = await ask("jana");
    const releasing = await client(releaseAllocation, { params: { allocation_id: asked.id } });
    const first = await client(getTask, { params: { task_id: asked.task_id ?? "" } });
    expect(first.status).toBe("cancelled");
    const [, ran] = await Promise.all([waitUntil("released", releasing), nodeAnswers()]);
    expect(ran).toEqual(["allocation.deprovision_user"]);
  });

  it("BM-02 waits for a node that takes no work, without failing", async () => {
    const asked = await ask("klara");
    await Promise.all([waitUntil("active", asked), nodeAnswers()]);
    await superuser`UPDATE nodes SET status = 'quarantined' WHERE id = ${node.id}`;
    const releasing = await client(releaseAllocation, { params: { allocation_id: asked.id } });
    expect(releasing).toMatchObject({ status: "releasing", task_id: null, reason: { code: "node_not_active" } });
    await superuser`UPDATE nodes SET status = 'active' WHERE id = ${node.id}`;
    const [released] = await Promise.all([waitUntil("released", releasing), nodeAnswers()]);
    expect(released).toMatchObject({ status: "released", reason: null });
  });

  it("BM-02 of an unknown one is not found", async () => {
    const asked = client(releaseAllocation, { params: { allocation_id: uuidv7() } });
    expect(await refusal(asked)).toMatchObject({ status: 404 });
  });
});

describe("looking", () => {
  it("BM-03 lists by node, project and status, newest first", async () => {
    const ids = async (query: Parameters<typeof list>[0]) => (await list(query)).items.map(({ id }) => id);
    const list = (query: {
      node_id?: string;
      project_id?: string;
      status?: Allocation["status"];
      limit?: number;
    }) => client(listAllocations, { query });
    const all = await ids({});
    expect(all).toEqual(all.toSorted().toReversed());
    expect((await ids({ node_id: node.id })).length).toBeLessThan(all.length);
    expect(await ids({ project_id: uuidv7() })).toEqual([]);
    const released = (await list({ status: "released" })).items;
    expect(new Set(released.map(({ status }) => status))).toEqual(new Set(["released"]));
    const page = await list({ limit: 1 });
    expect([page.items.length, typeof page.next_cursor]).toEqual([1, "string"]);
  });

  it("BM-03 answers a wait at once when there is news, and for what is not theirs like for nothing", async () => {
    const [some] = (await client(listAllocations, {})).items;
    const params = { allocation_id: some?.id ?? "" };
    const stale = await client(getAllocation, { params, query: { wait_seconds: 25, revision: 0 } });
    expect(stale.id).toBe(some?.id);
    const stranger = api.as(await tokenFor(api, await createOrg(api, "stranger"), "owner"));
    expect(await refusal(stranger(getAllocation, { params, query: { wait_seconds: 25 } }))).toMatchObject({
      status: 404,
    });
  });

  it("TASK-08 AUDIT-03 names the actor of the request for each task of an allocation", async () => {
    const person = await addMember(api, kelp, "ada@kelp.example", "member");
    const { id: tokenId, token } = await person.client(kelp.id)(createToken, { body: { name: "ada's laptop" } });
    const asked = await person.client(kelp.id)(createAllocation, { body: { node_id: node.id, username: "ada" } });
    await Promise.all([waitUntil("active", asked, person.client(kelp.id)), nodeAnswers()]);
    await api.as(token)(releaseAllocation, { params: { allocation_id: asked.id } });
    await nodeAnswers();
    const tasks = await superuser`
      SELECT e.actor_type, e.actor_id, e.actor_name, e.role, t.type FROM audit_events e
      JOIN tasks t ON t.id::text = e.target_id
      WHERE e.action = 'task.create' AND t.params ->> 'allocation_id' = ${asked.id} ORDER BY e.id`;
    const user = { actor_type: "user", actor_id: person.me.id, actor_name: "ada@kelp.example", role: "member" };
    const byToken = { actor_type: "token", actor_id: tokenId, actor_name: "ada's laptop", role: "member" };
    expect(tasks).toEqual([
      { ...user, type: "allocation.provision_user" },
      { ...byToken, type: "allocation.deprovision_user" },
    ]);
  });

  it("AUDIT-01 tells who asked and who gave back", async () => {
    const owner = api.as(await tokenFor(api, kelp, "owner"));
    const { items } = await owner(listAudit, { query: { action: "allocation.", target: "ines@reef-1" } });
    expect(items.map(({ action, result }) => `${action} ${result}`)).toContain("allocation.release allowed");
    expect(items.map(({ action }) => action)).toContain("allocation.create");
  });
});
