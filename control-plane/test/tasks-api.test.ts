// The task path over HTTP, from end to end: a person's request on one listener, the node's with its certificate on the
// other, with the real control plane in between.

import { createPublicKey } from "node:crypto";
import { CallError, type Client } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import {
  cancelTask,
  createTask,
  getTask,
  listTasks,
  listTaskTypes,
  type Task,
} from "@holdfast/contracts/endpoints/tasks";
import type { TaskOffer, WaitAnswer } from "@holdfast/contracts/node/protocol";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { verifyDetached } from "@holdfast/kit/detached-jws";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { quiet } from "../../testkit/api/replica.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { openSignals } from "../src/mechanisms/signals.ts";
import { sweepTasks } from "../src/tasks/sweep.ts";

let api: TestApi;
let org: TestOrg;
let admin: Client;
let node: TestNode;

beforeAll(async () => {
  api = await startTestApi();
  org = await createOrg(api, "reef");
  admin = api.as(await tokenFor(api, org, "admin"));
  node = await enrollTestNode(api, org.id);
  await sendHeartbeatFrom(node);
});

const run = (body: { type: string; params?: Record<string, unknown>; priority?: number }) =>
  admin(createTask, { params: { node_id: node.id }, body });
const read = (task: Pick<Task, "id">) => admin(getTask, { params: { task_id: task.id } });

async function take(wait = 25, query = ""): Promise<WaitAnswer> {
  const answer = await node.client.ask({ path: node.path(`tasks/wait?wait=${wait}&room=4${query}`) });
  expect(answer.status).toBe(200);
  return answer.body as WaitAnswer;
}

const report = (offer: TaskOffer, outcome: unknown) =>
  node.client.ask({
    method: "POST",
    path: node.path(`tasks/${offer.task_id}/result`),
    body: { generation: offer.generation, timings: { run: 2 }, outcome },
  });

const refusal = async (request: Promise<unknown>) => {
  const error = await request.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof CallError)) throw new Error(`not refused: ${error}`);
  return { status: error.status, code: error.envelope.code, message: error.envelope.message };
};

describe("a task, from end to end", () => {
  it("TASK-02 TASK-03 TASK-04 is signed, awaited, claimed, reported and read", async () => {
    const polled = take();
    const made = await run({ type: "node.noop", params: { echo: "hello" } });
    expect(made).toMatchObject({ status: "queued", revision: 1, created_by: "reef admin" });
    const seen = admin(getTask, { params: { task_id: made.id }, query: { wait_seconds: 25, until: "end" } });
    const { node: standing, tasks } = await polled;
    expect(standing).toEqual({ status: "active", reason: null });
    const [offer] = tasks;
    if (!offer) throw new Error("nothing was offered");
    expect(offer).toMatchObject({ task_id: made.id, generation: 1, correlation_id: made.correlation_id });

    const keys = new Map(
      node.enrolled.verifiers.keys.map((jwk) => [jwk.kid, createPublicKey({ key: { ...jwk }, format: "jwk" })]),
    );
    const { task_id, task_type, params, expires_at, signature } = offer;
    const signed = { task_id, node_id: node.id, task_type, params, expires_at };
    expect(verifyDetached(keys, canonicalJson(signed), signature)).toBe("valid");

    const posted = await report(offer, { status: "succeeded", result: { echo: "hello" } });
    expect(posted.body).toEqual({ verdict: "accepted" });
    const repeated = await report(offer, { status: "succeeded", result: { echo: "other" } });
    expect(repeated.body).toEqual({ verdict: "duplicate" });
    expect(await seen).toMatchObject({ status: "completed", result: { echo: "hello" }, timings: { run: 2 } });
  });

  it("TASK-09 returns progress to waiting requests, and stops the task by the poll", async () => {
    const made = await run({ type: "node.noop", params: { hold_ms: 1000 } });
    const [offer] = (await take()).tasks;
    if (!offer) throw new Error("nothing was offered");
    const { revision } = await read(made);
    const changed = admin(getTask, { params: { task_id: made.id }, query: { wait_seconds: 25, revision } });
    const sample = { generation: 1, phase: "holding", data: { percent: 10 }, timings: {} };
    const progress = { method: "POST", path: node.path(`tasks/${offer.task_id}/progress`), body: sample };
    expect((await node.client.ask(progress)).body).toEqual({ cancel: false });
    expect(await changed).toMatchObject({ phase: "holding", progress: { percent: 10 } });

    const polled = take(25, `&holding=${offer.task_id}:1`);
    const cancelled = await admin(cancelTask, { params: { task_id: made.id } });
    expect(cancelled).toMatchObject({ status: "dispatched" });
    expect(cancelled.cancel_requested_at).not.toBeNull();
    expect(await polled).toMatchObject({ tasks: [], cancel: [made.id] });
    const failure = { code: "task_cancelled", message: "", next_step: "" };
    expect((await report(offer, { status: "cancelled", failure })).body).toEqual({ verdict: "accepted" });
    expect(await read(made)).toMatchObject({ status: "cancelled", failure: { code: "task_cancelled" } });
  });

  it("TASK-09 shows no phase of a task that has ended, or waits for its next delivery", async () => {
    const made = await run({ type: "node.noop" });
    const [offer] = (await take()).tasks;
    if (!offer) throw new Error("nothing was offered");
    const sample = { generation: 1, phase: "holding", timings: {} };
    const path = node.path(`tasks/${offer.task_id}/progress`);
    await node.client.ask({ method: "POST", path, body: sample });
    expect(await read(made)).toMatchObject({ status: "dispatched", phase: "holding" });
    const { superuser, system } = openRoles(api.database);
    await superuser`UPDATE tasks SET lease_until = now() WHERE id = ${made.id}`;
    const signals = await openSignals(system, quiet);
    await sweepTasks(system, signals);
    await signals.stop();
    expect(await read(made)).toMatchObject({ status: "queued", phase: null });
    const [again] = (await take()).tasks;
    if (!again) throw new Error("nothing was offered again");
    expect(await read(made)).toMatchObject({ status: "dispatched", generation: 2, phase: null, progress: null });
    await node.client.ask({ method: "POST", path, body: { ...sample, generation: 2 } });
    await report(again, { status: "succeeded", result: { echo: null } });
    expect(await read(made)).toMatchObject({ status: "completed", phase: null });
    const { items } = await admin(listTasks, { query: { node_id: node.id, limit: 1 } });
    expect(items[0]).toMatchObject({ id: made.id, phase: null });
  });

  it("TASK-04 takes several results at once, with one verdict each", async () => {
    const made = [await run({ type: "node.noop" }), await run({ type: "node.noop" })];
    const { tasks } = await take();
    expect(tasks).toHaveLength(2);
    const unknown = uuidv7();
    const results = [...tasks.map((offer) => offer.task_id), unknown].map((task_id) => ({
      task_id,
      generation: 1,
      timings: {},
      outcome: { status: "succeeded", result: { echo: null } },
    }));
    const answer = await node.client.ask({ method: "POST", path: node.path("results"), body: { results } });
    expect(answer.body).toEqual({
      verdicts: [
        ...made.map(({ id }) => ({ task_id: id, verdict: "accepted" })),
        { task_id: unknown, verdict: "unknown" },
      ],
    });
  });

  it("TASK-02 answers a poll with nothing when its time is over", async () => {
    expect(await take(0)).toEqual({ node: { status: "active", reason: null }, tasks: [], cancel: [] });
  });
});

describe("requests", () => {
  it("TASK-08 audits every enqueue and every cancel, and says who", async () => {
    const made = await run({ type: "node.noop" });
    await admin(cancelTask, { params: { task_id: made.id } });
    const { items } = await admin(listAudit, {});
    const about = items.filter((event) => event.target_id === made.id);
    expect(about.map(({ action, actor_name, result }) => ({ action, actor_name, result }))).toEqual([
      { action: "task.cancel", actor_name: "reef admin", result: "allowed" },
      { action: "task.create", actor_name: "reef admin", result: "allowed" },
    ]);
    expect(about.at(-1)?.correlation_id).toBe(made.correlation_id);
  });

  it("TASK-01 refuses an unknown type, bad params, an unknown node, and types that are not run by hand", async () => {
    expect(await refusal(run({ type: "shell.run" }))).toMatchObject({ status: 400, code: "task_type_unknown" });
    expect(await refusal(run({ type: "node.noop", params: { hold_ms: "long" } }))).toMatchObject({
      status: 400,
      code: "task_params_invalid",
    });
    const nowhere = admin(createTask, { params: { node_id: uuidv7() }, body: { type: "node.noop" } });
    expect(await refusal(nowhere)).toMatchObject({ status: 404, code: "not_found" });
    const { items } = await admin(listTaskTypes, {});
    const [internal] = items.filter((type) => !type.by_hand);
    if (!internal) throw new Error("every type may be run by hand");
    expect(await refusal(run({ type: internal.type }))).toMatchObject({ status: 403, code: "forbidden" });
  });

  it("TASK-07 describes each type with its schemas and what can go wrong", async () => {
    const { items } = await admin(listTaskTypes, {});
    const noop = items.find((type) => type.type === "node.noop");
    expect(noop).toMatchObject({ idempotent: true, kind: "observation", params: { type: "object" } });
    expect(noop?.failures["task_timed_out"]?.next_step).toBeTruthy();
  });

  it("SEC-01 lets a member read and wait, and not run", async () => {
    const member = api.as(await tokenFor(api, org, "member"));
    const body = { type: "node.noop" };
    expect(await refusal(member(createTask, { params: { node_id: node.id }, body }))).toMatchObject({
      status: 403,
    });
    expect((await member(listTasks, { query: { limit: 1 } })).items).toHaveLength(1);
  });

  it("lists by node, status and type, newest first, page by page", async () => {
    const all = (await admin(listTasks, {})).items;
    expect(all.map(({ id }) => id)).toEqual(
      all
        .map(({ id }) => id)
        .sort()
        .reverse(),
    );
    const first = await admin(listTasks, { query: { limit: 2, node_id: node.id } });
    const second = await admin(listTasks, { query: { limit: 2, cursor: first.next_cursor ?? "" } });
    expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(all.slice(0, 4).map(({ id }) => id));
    const done = await admin(listTasks, { query: { status: "completed", type: "node.noop" } });
    expect(done.items.length).toBeGreaterThan(0);
    expect(done.items.every((task) => task.status === "completed")).toBe(true);
  });

  it("SEC-01 lets another organization neither see nor wait for nor cancel a task", async () => {
    const made = await run({ type: "node.noop" });
    const theirs = api.as(await tokenFor(api, await createOrg(api, "shoal"), "owner"));
    const params = { task_id: made.id };
    expect(await refusal(theirs(getTask, { params, query: { wait_seconds: 25 } }))).toMatchObject({ status: 404 });
    expect(await refusal(theirs(cancelTask, { params }))).toMatchObject({ status: 404 });
    expect((await theirs(listTasks, {})).items).toEqual([]);
    expect((await read(made)).status).toBe("queued");
  });

  it("TASK-09 keeps no transaction open while a request waits, and responds to it when the server stops", async () => {
    const own = await startTestApi({ env: { HOLDFAST_DATABASE_POOL_SIZE: "2" } });
    const place = await createOrg(own, "own");
    const client = own.as(await tokenFor(own, place, "owner"));
    const machine = await enrollTestNode(own, place.id);
    await sendHeartbeatFrom(machine);
    const made = await client(createTask, { params: { node_id: machine.id }, body: { type: "node.noop" } });
    const query = { wait_seconds: 25, revision: made.revision };
    // More than the pool has connections: another request still gets one.
    const waits = Array.from({ length: 6 }, () => client(getTask, { params: { task_id: made.id }, query }));
    expect((await client(listTasks, {})).items).toHaveLength(1);
    const settled = Promise.allSettled(waits);
    await own.stop();
    expect((await settled).map((one) => one.status)).toEqual(waits.map(() => "fulfilled"));
  });
});
