// Runs on a real api and database, continued by the engine of a worker: its turns are called here one by one, so that crashes can be
// put between any two of them.

import type { ServerResponse } from "node:http";
import { codeOf } from "@holdfast/contracts/client";
import {
  cancelRun,
  getRun,
  listRunEvents,
  listRuns,
  type RunEventEntry,
  resumeRun,
  startRun,
} from "@holdfast/contracts/endpoints/runs";
import { applyWorkflow, publishWorkflow } from "@holdfast/contracts/endpoints/workflows";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { readWorkflow } from "@holdfast/workflows/document/read";
import type { RunEvent } from "@holdfast/workflows/run/events";
import { type RunState, rebuild } from "@holdfast/workflows/run/state";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { startWebhookServer, type WebhookServer } from "../../testkit/receivers/webhook-server.ts";
import type { Sql } from "../src/database/connect.ts";
import { continueRuns, type EngineOptions } from "../src/workflows/engine/turn.ts";
import { appendEvents } from "../src/workflows/runs/transitions/append.ts";

let api: TestApi;
let system: Sql;
let superuser: Sql;
let server: WebhookServer;
let org: TestOrg;
let options: EngineOptions;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  server = await startWebhookServer();
});

beforeEach(async () => {
  org = await createOrg(api, `org-${uuidv7().slice(-12)}`);
  server.received.length = 0;
  server.answer = (response) => response.setHeader("content-type", "application/json").end('{"ok":true}');
  options = {
    ...{ system, log: createLog({ process: "test", level: "silent" }), pollMs: 100, concurrency: 10 },
    ...{ stepTimeoutMs: 10_000, runsPerOrg: 100, queue: "workflow-continuations", allowedNetworks: ["127.0.0.1"] },
    gateway: { url: undefined, token: undefined },
  };
});

const client = () => api.operator(org.id);
const turn = (changes: Partial<EngineOptions> = {}) => continueRuns({ ...options, ...changes });

async function publish(nodes: string, name = "flow", more = ""): Promise<string> {
  const { id, problems } = await client()(applyWorkflow, {
    body: { name, source: `version: "1"\n${more}nodes:\n${nodes}` },
  });
  expect(problems).toEqual([]);
  await client()(publishWorkflow, { params: { workflow_id: id }, body: {} });
  return id;
}
async function start(nodes: string, input: object = {}): Promise<string> {
  const workflow_id = await publish(nodes);
  return (await client()(startRun, { params: { workflow_id }, body: { input: input as never } })).id;
}
const shown = (run_id: string) => client()(getRun, { params: { run_id } });
const eventsOf = async (run_id: string) => (await client()(listRunEvents, { params: { run_id } })).items;
const brief = (events: readonly RunEventEntry[]) =>
  events.map(({ type, node }) => (node === null ? type : `${type} ${node}`));
/** As after a kill: nobody renews the claim. */
const abandonClaims = () =>
  superuser`UPDATE workflow_runs SET claimed_until = now() - interval '1 second' WHERE claimed_until IS NOT NULL`;

/** What the events say is what is stored. */
async function expectRebuilt(run_id: string): Promise<void> {
  const [row] = await superuser`
    SELECT r.cursor, r.status, v.source FROM workflow_runs r JOIN workflow_versions v USING (workflow_id, version) WHERE r.id = ${run_id}`;
  const read = readWorkflow(row?.["source"] as string);
  if (!read.ok) throw new Error("invalid");
  const events = (await eventsOf(run_id)).map(({ type, node, attempt, data }) => {
    return {
      type,
      ...(node === null ? {} : { node }),
      ...(attempt === null ? {} : { attempt }),
      ...data,
    } as RunEvent;
  });
  expect(rebuild(read.document, events)).toEqual(row?.["cursor"]);
  expect(rebuild(read.document, events).status).toBe(row?.["status"]);
}

const get = (more = "") => `{ type: http.request, url: "${server.url}"${more} }`;

describe("FLOW-02 FLOW-03 a run", () => {
  it("goes through its nodes, hands values on, and keeps every event", async () => {
    const run = await start(
      `  ask: ${get(', method: POST, body: { page: "${{ input.page }}" }')}
  check: { type: condition, after: [ask], if: nodes.ask.output.body.ok }
  yes: { type: connector.action, after: [check.true], connector: echo, action: echo, input: "got \${{ nodes.ask.output.status }}" }
  no: { type: connector.action, after: [check.false], connector: echo, action: echo }
`,
      { page: 7 },
    );
    expect(await shown(run)).toMatchObject({ status: "queued", started_by: "local operator" });
    await turn();
    expect(await shown(run)).toMatchObject({ status: "succeeded", output: { yes: "got 200" } });
    expect(brief(await eventsOf(run))).toEqual([
      ...["run_started", "node_started ask", "node_succeeded ask", "node_started check", "node_succeeded check"],
      ...["node_started yes", "node_succeeded yes", "node_skipped no", "run_succeeded"],
    ]);
    expect(server.received).toMatchObject([
      { body: '{"page":7}', headers: { "idempotency-key": expect.stringMatching(`^${run}:ask:[0-9a-f]{16}$`) } },
    ]);
    await expectRebuilt(run);
  });

  it("follows the path of a failure, and fails where there is none", async () => {
    const handled = await start(
      `  ask: { type: http.request, url: "http://127.0.0.1:1/" }
  repair: { type: connector.action, after: [ask.failed], connector: echo, action: echo, input: "\${{ nodes.ask.error.code }}" }
`,
    );
    await turn();
    expect(await shown(handled)).toMatchObject({ status: "succeeded", output: { repair: "http_failed" } });
    const unhandled = await start(
      `  ask: { type: connector.action, connector: http, action: get, input: { url: "https://127.0.0.9/" } }\n  next: { type: parallel, after: [ask] }\n`,
    );
    await turn();
    expect(await shown(unhandled)).toMatchObject({ status: "failed", failure: { code: "address_refused" } });
    expect(brief(await eventsOf(unhandled)).slice(-2)).toEqual(["node_skipped next", "run_failed"]);
    await expectRebuilt(unhandled);
  });

  it("FLOW-04 tries again after a failure, with the same key: the attempt before may have had its effect", async () => {
    let failures = 2;
    server.answer = (response) => (failures-- > 0 ? response.destroy() : response.end("done"));
    const run = await start(
      `  ask: ${get(", method: POST, effect: idempotent, retry: { attempts: 3, delay: 1ms }")}\n`,
    );
    for (let turns = 0; turns < 50 && (await shown(run)).status !== "succeeded"; turns++) await turn();
    expect(brief(await eventsOf(run))).toEqual([
      ...["run_started", "node_started ask", "node_retried ask", "node_started ask", "node_retried ask"],
      ...["node_started ask", "node_succeeded ask", "run_succeeded"],
    ]);
    expect(server.received).toHaveLength(3);
    expect(new Set(server.received.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
    await expectRebuilt(run);
  });

  it("waits for a person, and goes on or fails as they decide", async () => {
    const nodes = `  ok: { type: wait, approval: { message: "Now?" } }\n  next: { type: parallel, after: [ok] }\n`;
    const approved = await start(nodes);
    const rejected = await start(nodes);
    await turn();
    expect((await shown(approved)).nodes[0]).toMatchObject({ status: "waiting", waiting_for: "an approval" });
    await turn();
    const resume = (run_id: string, body: { node: string; approved?: boolean }) =>
      client()(resumeRun, { params: { run_id }, body });
    expect(codeOf(await resume(approved, { node: "next" }).catch((error) => error))).toBe("run_not_waiting");
    await resume(approved, { node: "ok" });
    await resume(rejected, { node: "ok", approved: false });
    expect(codeOf(await resume(approved, { node: "ok" }).catch((error) => error))).toBe("run_not_waiting");
    await turn();
    expect(await shown(approved)).toMatchObject({ status: "succeeded" });
    expect(await shown(rejected)).toMatchObject({ status: "failed", failure: { code: "rejected" } });
  });

  it("waits for a time, and is not touched before", async () => {
    const run = await start("  pause: { type: wait, for: 1h }\n");
    await turn();
    expect(await turn()).toEqual({ continued: 0 });
    await superuser`
      UPDATE workflow_runs SET wake_at = now(), cursor = replace(cursor::text, substring(cursor::text from '"until":"[^"]*"'), '"until":"2020-01-01T00:00:00.000Z"')::json
      WHERE id = ${run}`;
    await turn();
    expect(await shown(run)).toMatchObject({ status: "succeeded" });
  });

  it("is cancelled, queued or waiting, and not after its end", async () => {
    const waiting = await start("  pause: { type: wait, for: 1h }\n");
    await turn();
    const queued = await start("  pause: { type: wait, for: 1h }\n");
    for (const run_id of [waiting, queued]) await client()(cancelRun, { params: { run_id } });
    await turn();
    for (const run_id of [waiting, queued]) {
      expect(await shown(run_id)).toMatchObject({ status: "cancelled" });
      expect(brief(await eventsOf(run_id)).slice(-3)).toEqual([
        "run_cancel_requested",
        "node_skipped pause",
        "run_cancelled",
      ]);
      expect(codeOf(await client()(cancelRun, { params: { run_id } }).catch((error) => error))).toBe("run_ended");
    }
  });

  it("FLOW-04 has as long as its document says, and is looked at by then, however long it waits", async () => {
    const workflow_id = await publish("  pause: { type: wait, for: 90d }\n", "flow", "timeout: 2h\n");
    const run = (await client()(startRun, { params: { workflow_id }, body: {} })).id;
    await turn();
    const { started_at, deadline_at } = await shown(run);
    expect(Date.parse(deadline_at) - Date.parse(started_at ?? "")).toBe(2 * 3_600_000);
    const [row] = await superuser`SELECT wake_at = deadline_at AS by_then FROM workflow_runs WHERE id = ${run}`;
    expect(row).toEqual({ by_then: true });
  });

  it("FLOW-02 goes on in one branch while a step of another one takes its time, and is cancelled meanwhile", async () => {
    const held: ServerResponse[] = [];
    server.answer = (response) =>
      response.req.url?.endsWith("slow") ? held.push(response) : response.end("done");
    const run = await start(
      `  slow: { type: http.request, url: "${server.url}slow" }
  never: { type: parallel, after: [slow] }
  quick: { type: http.request, url: "${server.url}quick" }
  next: { type: http.request, after: [quick], url: "${server.url}next" }
`,
    );
    const turning = turn();
    await expect.poll(async () => brief(await eventsOf(run))).toContain("node_succeeded next");
    expect(held).toHaveLength(1);
    await client()(cancelRun, { params: { run_id: run } });
    await expect.poll(async () => brief(await eventsOf(run))).toContain("node_skipped never");
    held[0]?.end("done");
    await turning;
    expect(await shown(run)).toMatchObject({ status: "cancelled" });
    expect(brief(await eventsOf(run)).slice(-2)).toEqual(["node_succeeded slow", "run_cancelled"]);
    await expectRebuilt(run);
  });

  it("FLOW-04 fails with a step whose output is too much for it, which is not repeated", async () => {
    server.answer = (response) => response.end("x".repeat(500 * 1024));
    const step = (n: number) =>
      `  n${n}: ${get(`, retry: { attempts: 2 }${n > 0 ? `, after: [n${n - 1}]` : ""}`)}\n`;
    const run = await start(Array.from({ length: 9 }, (_, n) => step(n)).join(""));
    await turn();
    expect(await shown(run)).toMatchObject({ status: "failed", failure: { code: "output_too_large" } });
    expect(server.received).toHaveLength(9);
    await expectRebuilt(run);
  });

  it("ends at its deadline", async () => {
    const run = await start("  pause: { type: wait, event: never }\n");
    await turn();
    await superuser`UPDATE workflow_runs SET deadline_at = now(), wake_at = now() WHERE id = ${run}`;
    await turn();
    expect(await shown(run)).toMatchObject({ status: "failed", failure: { code: "run_deadline" } });
    await expectRebuilt(run);
  });

  it("FLOW-01 reaches no private address that the operator has not allowed", async () => {
    const run = await start(`  ask: ${get()}\n`);
    await turn({ allowedNetworks: [] });
    expect(await shown(run)).toMatchObject({ status: "failed", failure: { code: "address_refused" } });
    expect(server.received).toEqual([]);
  });

  it("EXEC-05 says what a worker without a gateway lacks", async () => {
    const run = await start("  a: { type: agent.execute, script: 'true' }\n");
    await turn();
    expect(await shown(run)).toMatchObject({ status: "failed", failure: { code: "GATEWAY_NOT_CONFIGURED" } });
  });
});

describe("FLOW-02 a worker that dies", () => {
  /** A worker that never hears back of its request, while another one takes over. */
  async function dieWithin(run: string): Promise<void> {
    const held: ServerResponse[] = [];
    server.answer = (response) => held.push(response);
    const dying = turn();
    await expect.poll(() => server.received.length).toBe(1);
    server.answer = (response) => response.end("done");
    await superuser`UPDATE workflow_runs SET claim = claim + 1, claimed_until = now() - interval '1 second' WHERE id = ${run}`;
    await turn();
    await expect.poll(async () => (await shown(run)).status).not.toBe("running");
    // What the first one learns now is no longer accepted.
    for (const response of held) response.end("late");
    await dying;
  }

  it("within a step that may run once leaves it unknown, and never repeats it", async () => {
    const run = await start(`  ask: ${get(", method: POST, retry: { attempts: 3 }")}\n`);
    await dieWithin(run);
    expect(await shown(run)).toMatchObject({ status: "failed", failure: { code: "outcome_unknown" } });
    expect(server.received).toHaveLength(1);
    await expectRebuilt(run);
  });

  it("within an idempotent step lets the next one repeat it with the same key", async () => {
    const run = await start(`  ask: ${get(", method: POST, effect: idempotent")}\n`);
    await dieWithin(run);
    expect(await shown(run)).toMatchObject({ status: "succeeded" });
    expect(server.received).toHaveLength(2);
    expect(new Set(server.received.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
    expect(brief(await eventsOf(run))).toEqual([
      "run_started",
      "node_started ask",
      "node_succeeded ask",
      "run_succeeded",
    ]);
  });

  it("has written that a step begins before anything is sent, also where the connector is asked", async () => {
    const held: ServerResponse[] = [];
    server.answer = (response) => held.push(response);
    const input = `{ method: POST, url: "${server.url}" }`;
    const run = await start(
      `  ask: { type: connector.action, connector: http, action: request, input: ${input} }\n`,
    );
    const turning = turn();
    await expect.poll(() => held.length).toBe(1);
    expect(brief(await eventsOf(run))).toEqual(["run_started", "node_started ask"]);
    held[0]?.end("done");
    await turning;
    expect(await shown(run)).toMatchObject({ status: "succeeded" });
  });

  it("writes steps that do nothing outside at once, unless their author declares an effect", async () => {
    const echo = (more: string) => `{ type: connector.action, connector: echo, action: echo${more} }\n`;
    const writes: string[] = [];
    const once = await start(`  a: ${echo("")}  b: ${echo(", after: [a]")}`);
    const kept = await start(`  a: ${echo(", effect: at-most-once")}`);
    await turn({ onProgress: (id) => writes.push(id) });
    // The first event of a run is written alone.
    expect(writes.filter((id) => id === once)).toHaveLength(2);
    expect(writes.filter((id) => id === kept)).toHaveLength(3);
  });

  it("is refused what it writes after another one has claimed the run", async () => {
    const run = await start("  pause: { type: wait, for: 1h }\n");
    await turn();
    const [row] =
      await superuser`SELECT claim, last_seq AS "lastSeq", cursor FROM workflow_runs WHERE id = ${run}`;
    const { claim, lastSeq, cursor } = row as { claim: number; lastSeq: number; cursor: RunState };
    const append = (as: number) =>
      appendEvents(system, { id: run, claim: as, lastSeq }, [{ type: "run_cancel_requested" }], cursor);
    expect(await append(claim - 1)).toBeUndefined();
    expect(await append(claim)).toEqual({ cancelRequested: false, overdue: false });
  });

  it("before it has begun anything loses nothing", async () => {
    const run = await start(`  ask: ${get()}\n`);
    await superuser`UPDATE workflow_runs SET claim = 1, claimed_until = now() + interval '1 hour' WHERE id = ${run}`;
    expect(await turn()).toEqual({ continued: 0 });
    await abandonClaims();
    await turn();
    expect(await shown(run)).toMatchObject({ status: "succeeded" });
  });
});

describe("FLOW-02 several workers", () => {
  it("continue each run once", async () => {
    const workflow_id = await publish(`  ask: ${get(", method: POST")}\n`);
    const runs = await Promise.all(
      Array.from({ length: 12 }, () => client()(startRun, { params: { workflow_id }, body: {} })),
    );
    await Promise.all([turn({ concurrency: 3 }), turn({ concurrency: 3 }), turn({ concurrency: 3 })]);
    for (const { id } of runs) expect(await shown(id)).toMatchObject({ status: "succeeded" });
    expect(new Set(server.received.map(({ headers }) => headers["idempotency-key"])).size).toBe(12);
    expect(server.received).toHaveLength(12);
  });

  it("FLOW-04 let no organization have more runs worked on than it may, nor keep others waiting", async () => {
    const other = await createOrg(api, `org-${uuidv7().slice(-12)}`);
    // A gateway that does not answer: the step may have reached it.
    const gateway = { url: "http://127.0.0.1:1", token: "dispatch" };
    const workflow_id = await publish("  far: { type: agent.execute, script: 'true' }\n");
    for (let count = 0; count < 5; count++) await client()(startRun, { params: { workflow_id }, body: {} });
    const [mine, theirs] = [org, other];
    org = theirs;
    const late = await start("  pause: { type: wait, for: 1h }\n");
    await turn({ runsPerOrg: 2, concurrency: 2, gateway });
    expect(await shown(late)).toMatchObject({ status: "running" });
    org = mine;
    const { items } = await client()(listRuns, {});
    expect(items.map(({ status }) => status).sort()).toEqual(["queued", "queued", "queued", "running", "running"]);
  });

  it("FLOW-04 count no run that waits, and let it go on when a place is free", async () => {
    const gateway = { url: "http://127.0.0.1:1", token: "dispatch" };
    const pause = await publish(
      "  ok: { type: wait, approval: {} }\n  last: { type: parallel, after: [ok] }\n",
      "pause",
    );
    const waiting = (await client()(startRun, { params: { workflow_id: pause }, body: {} })).id;
    await turn({ runsPerOrg: 1, gateway });
    const far = await start("  far: { type: agent.execute, script: 'true' }\n");
    await turn({ runsPerOrg: 1, gateway });
    expect(await shown(far)).toMatchObject({ status: "running" });
    await client()(resumeRun, { params: { run_id: waiting }, body: { node: "ok" } });
    await turn({ runsPerOrg: 1, gateway });
    expect(await shown(waiting)).toMatchObject({ status: "running" });
    await turn({ runsPerOrg: 2, gateway });
    expect(await shown(waiting)).toMatchObject({ status: "succeeded" });
  });
});
