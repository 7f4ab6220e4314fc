// Failed runs that continue where they failed, and events that people send, on a real api and database.

import { codeOf } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import {
  getRun,
  listRunEvents,
  resumeRun,
  retryRun,
  sendRunEvent,
  startRun,
} from "@holdfast/contracts/endpoints/runs";
import { applyWorkflow, getWorkflowVersion, publishWorkflow } from "@holdfast/contracts/endpoints/workflows";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { readWorkflow } from "@holdfast/workflows/document/read";
import type { RunEvent } from "@holdfast/workflows/run/events";
import { rebuild } from "@holdfast/workflows/run/state";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { startWebhookServer, type WebhookServer } from "../../testkit/receivers/webhook-server.ts";
import type { Sql } from "../src/database/connect.ts";
import { continueRuns, type EngineOptions } from "../src/workflows/engine/turn.ts";

let api: TestApi;
let system: Sql;
let superuser: Sql;
let server: WebhookServer;
let org: TestOrg;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  server = await startWebhookServer();
});
beforeEach(async () => {
  org = await createOrg(api, `org-${uuidv7().slice(-12)}`);
  server.received.length = 0;
  server.answer = (response) => response.end("done");
});

const client = () => api.operator(org.id);
const turn = (changes: Partial<EngineOptions> = {}) =>
  continueRuns({
    ...{ system, log: createLog({ process: "test", level: "silent" }), pollMs: 100, concurrency: 10 },
    ...{ stepTimeoutMs: 10_000, runsPerOrg: 100, allowedNetworks: ["127.0.0.1"], queue: "workflow-continuations" },
    gateway: { url: undefined, token: undefined },
    ...changes,
  });
async function publish(nodes: string): Promise<string> {
  const source = `version: "1"\nnodes:\n${nodes}`;
  const { id, problems } = await client()(applyWorkflow, { body: { name: "flow", source } });
  expect(problems).toEqual([]);
  await client()(publishWorkflow, { params: { workflow_id: id }, body: {} });
  return id;
}
async function start(nodes: string): Promise<string> {
  const workflow_id = await publish(nodes);
  const { id } = await client()(startRun, { params: { workflow_id }, body: {} });
  await turn();
  return id;
}
const shown = (run_id: string) => client()(getRun, { params: { run_id } });
const retry = (run_id: string, body: { version?: number } = {}) =>
  client()(retryRun, { params: { run_id }, body });
const eventsOf = async (run_id: string) => (await client()(listRunEvents, { params: { run_id } })).items;
const states = async (run: string) =>
  Object.fromEntries((await shown(run)).nodes.map(({ id, status, attempt }) => [id, `${status} ${attempt}`]));

/** From the version that it began with. */
async function expectRebuilt(run_id: string): Promise<void> {
  const { workflow_id } = await shown(run_id);
  const stored = await eventsOf(run_id);
  const number = stored[0]?.data["version"] as number;
  const { source } = await client()(getWorkflowVersion, { params: { workflow_id }, query: { number } });
  const read = readWorkflow(source);
  if (!read.ok) throw new Error("invalid");
  const events = stored.map(({ type, node, attempt, data }) => {
    return {
      type,
      ...(node === null ? {} : { node }),
      ...(attempt === null ? {} : { attempt }),
      ...data,
    } as RunEvent;
  });
  const [row] = await superuser`SELECT cursor FROM workflow_runs WHERE id = ${run_id}`;
  expect(rebuild(read.document, events)).toEqual(row?.["cursor"]);
}

const post = (more = "") => `{ type: http.request, method: POST, url: "${server.url}"${more} }`;
/** Nothing listens there. */
const broken = (more = "") => `{ type: http.request, method: POST, url: "http://127.0.0.1:1/"${more} }`;

describe("FLOW-02 a failed run that is retried", () => {
  it("tries the failed step again, does not repeat what succeeded, and goes on from there", async () => {
    const run = await start(
      `  one: ${post()}\n  two: ${broken(", after: [one]")}\n  three: { type: parallel, after: [two] }\n  rest: { type: parallel, after: [two.failed, three] }\n`,
    );
    expect(await states(run)).toMatchObject({ one: "succeeded 1", two: "failed 1", rest: "succeeded 1" });
    const failed = await start(
      `  one: ${post()}\n  two: ${broken(", after: [one]")}\n  three: { type: parallel, after: [two] }\n`,
    );
    expect(await states(failed)).toMatchObject({ one: "succeeded 1", two: "failed 1", three: "skipped null" });
    await retry(failed);
    expect(await shown(failed)).toMatchObject({ status: "queued", failure: null, finished_at: null });
    await turn();
    // It fails again, as attempt 2: no attempt has the id of another.
    expect(await states(failed)).toMatchObject({ one: "succeeded 1", two: "failed 2", three: "skipped null" });
    expect(server.received).toHaveLength(2);
    const { items } = await client()(listAudit, { query: { action: "run.retry" } });
    expect(items).toMatchObject([{ target_id: failed, details: { nodes: ["two"] } }]);
    await expectRebuilt(failed);
  });

  it("continues with a later version in which the step was corrected, and nodes were added and removed", async () => {
    const run = await start(
      `  one: ${post()}\n  two: ${broken(", after: [one]")}\n  old: { type: parallel, after: [two] }\n`,
    );
    expect(codeOf(await retry(run, { version: 2 }).catch((error) => error))).toBe("workflow_not_published");
    await publish(`  one: ${post()}\n  two: ${post(", after: [one]")}\n  new: { type: parallel, after: [two] }\n`);
    expect(await retry(run, { version: 2 })).toMatchObject({ version: 2, status: "queued" });
    await turn();
    expect(await shown(run)).toMatchObject({ status: "succeeded", version: 2 });
    expect(await states(run)).toEqual({ one: "succeeded 1", two: "succeeded 2", new: "succeeded 1" });
    const [row] = await superuser`SELECT cursor FROM workflow_runs WHERE id = ${run}`;
    expect(Object.keys(row?.["cursor"].nodes).sort()).toEqual(["new", "one", "two"]);
    expect(server.received.map(({ headers }) => String(headers["idempotency-key"]).split(":")[1])).toEqual([
      "one",
      "two",
    ]);
    await expectRebuilt(run);
  });

  it("is only one that has failed, and is retried once", async () => {
    const run = await start(`  one: ${broken()}\n`);
    const all = await Promise.all([1, 2, 3].map(() => retry(run).catch((error) => codeOf(error))));
    expect(all.filter((one) => one === "run_not_failed")).toHaveLength(2);
    expect((await eventsOf(run)).filter(({ type }) => type === "run_retried")).toHaveLength(1);
    const good = await start(`  one: ${post()}\n`);
    expect(codeOf(await retry(good).catch((error) => error))).toBe("run_not_failed");
  });

  it("waits for room like any other", async () => {
    const run = await start(`  one: ${broken()}\n`);
    const gateway = { url: "http://127.0.0.1:1", token: "dispatch" };
    const workflow_id = await publish("  far: { type: agent.execute, script: 'true' }\n");
    await client()(startRun, { params: { workflow_id }, body: {} });
    await turn({ gateway });
    await retry(run);
    await turn({ runsPerOrg: 1, gateway });
    expect(await shown(run)).toMatchObject({ status: "queued" });
    await turn({ runsPerOrg: 2, gateway });
    expect(await shown(run)).toMatchObject({ status: "failed" });
    await expectRebuilt(run);
  });

  it("asks again for an approval that was rejected, and keeps count of what was to be tried again", async () => {
    const run = await start(
      `  ok: { type: wait, approval: {} }\n  slow: ${broken(", retry: { attempts: 5, delay: 1h }")}\n`,
    );
    const answer = (approved: boolean) =>
      client()(resumeRun, { params: { run_id: run }, body: { node: "ok", approved } });
    await answer(false);
    await turn();
    expect(await states(run)).toEqual({ ok: "failed 1", slow: "skipped 2" });
    await retry(run);
    await turn();
    expect(await states(run)).toEqual({ ok: "waiting 2", slow: "retrying 3" });
    await answer(true);
    await turn();
    expect(await states(run)).toMatchObject({ ok: "succeeded 2" });
    await expectRebuilt(run);
  });
});

describe("FLOW-01 an event", () => {
  it("reaches the nodes that wait for it, once, with its output", async () => {
    const run = await start(
      "  a: { type: wait, event: built }\n  b: { type: wait, event: built }\n  c: { type: wait, event: other }\n",
    );
    const send = (event: string) =>
      client()(sendRunEvent, { params: { run_id: run }, body: { event, output: { n: 1 } as never } });
    expect(codeOf(await send("unknown").catch((error) => error))).toBe("run_not_waiting");
    await send("built");
    expect(codeOf(await send("built").catch((error) => error))).toBe("run_not_waiting");
    await turn();
    expect(await states(run)).toEqual({ a: "succeeded 1", b: "succeeded 1", c: "waiting 1" });
    await send("other");
    await turn();
    const { status, output } = await shown(run);
    expect([status, output]).toMatchObject(["succeeded", { a: { value: { n: 1 } } }]);
  });
});

describe("FLOW-04 the queue", () => {
  it("of a worker is the one whose runs it continues", async () => {
    const workflow_id = await publish("  a: { type: parallel }\n");
    const { id } = await client()(startRun, { params: { workflow_id }, body: {} });
    await turn({ queue: "another" });
    expect(await shown(id)).toMatchObject({ status: "queued" });
    await turn();
    expect(await shown(id)).toMatchObject({ status: "succeeded" });
  });
});
