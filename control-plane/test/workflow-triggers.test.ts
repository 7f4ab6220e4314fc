// Schedules and webhooks on a real api and database; the turns of the worker's job are called here, as by several workers.

import { codeOf } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { getRun, listRuns } from "@holdfast/contracts/endpoints/runs";
import { setSecret } from "@holdfast/contracts/endpoints/secrets";
import {
  hookHeaders,
  rotateWorkflowTrigger,
  setWorkflowTrigger,
} from "@holdfast/contracts/endpoints/workflow-triggers";
import {
  applyWorkflow,
  deleteWorkflow,
  getWorkflow,
  publishWorkflow,
} from "@holdfast/contracts/endpoints/workflows";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { signatureOf } from "../src/workflows/triggers/authenticate-hook.ts";
import { startScheduledRuns } from "../src/workflows/triggers/schedule.ts";

let api: TestApi;
let system: Sql;
let superuser: Sql;
let org: TestOrg;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
});
beforeEach(async () => {
  org = await createOrg(api, `org-${uuidv7().slice(-12)}`);
  await superuser`DELETE FROM rate_limits`;
});

const client = () => api.operator(org.id);
const log = createLog({ process: "test", level: "silent" });
const turn = () => startScheduledRuns({ system, log, queue: "workflow-continuations" });

async function publish(triggers: string, name = "flow"): Promise<string> {
  const source = `version: "1"\ntriggers:\n${triggers}\nnodes:\n  a: { type: parallel }\n`;
  const { id, problems } = await client()(applyWorkflow, { body: { name, source } });
  expect(problems).toEqual([]);
  await client()(publishWorkflow, { params: { workflow_id: id }, body: {} });
  return id;
}
const triggersOf = async (workflow_id: string) =>
  (await client()(getWorkflow, { params: { workflow_id } })).triggers;
const runsOf = async (workflow_id: string) => (await client()(listRuns, { query: { workflow_id } })).items;
/** As if its time had come so long ago. */
const letPass = (workflow: string, interval: string) =>
  superuser`UPDATE workflow_triggers SET next_at = date_trunc('hour', now()) - ${interval}::interval
    WHERE workflow_id = ${workflow} AND next_at IS NOT NULL`;
const hourly = (more = "") => `  - { type: cron, schedule: "0 * * * *"${more} }`;

describe("FLOW-01 a schedule", () => {
  it("starts a run when its time has come, once, for the organization's service user, and names its next time", async () => {
    const workflow = await publish(hourly());
    const [before] = await triggersOf(workflow);
    expect(Date.parse(before?.next_at ?? "")).toBeGreaterThan(Date.now());
    expect(await turn()).toEqual({ started: 0 });
    await letPass(workflow, "0 hours");
    // Several workers at the same moment, and again.
    await Promise.all([turn(), turn(), turn()]);
    await turn();
    const runs = await runsOf(workflow);
    expect(runs).toMatchObject([{ trigger: "cron", started_by: "workflow service user", status: "queued" }]);
    const [trigger] = await triggersOf(workflow);
    expect(trigger).toMatchObject({
      last_run_id: runs[0]?.id,
      enabled: true,
      schedule: "0 * * * *",
      timezone: "UTC",
    });
    expect(Date.parse(trigger?.next_at ?? "")).toBeGreaterThan(Date.now());
    const [row] = await superuser`SELECT service_user_id AS id FROM organizations WHERE id = ${org.id}`;
    const [stored] = await superuser`SELECT user_id FROM workflow_runs WHERE id = ${runs[0]?.id ?? ""}`;
    expect(stored?.["user_id"]).toBe(row?.["id"]);
    const { items } = await client()(listAudit, { query: { action: "run.trigger" } });
    expect(items).toMatchObject([
      {
        actor_type: "system",
        actor_id: row?.["id"],
        result: "allowed",
        target_id: runs[0]?.id,
        details: { trigger_id: trigger?.id },
      },
    ]);
    const { input } = await client()(getRun, { params: { run_id: runs[0]?.id ?? "" } });
    expect(input).toEqual({ scheduled_at: runs[0]?.scheduled_at });
  });

  it.each([
    ["skip", 0],
    ["once", 1],
    ["all", 4],
  ])("that was missed four times while nothing ran: %s starts %i", async (missed, expected) => {
    const workflow = await publish(`  - { type: cron, schedule: "${farMinute()} * * * *", missed: ${missed} }`);
    await superuser`UPDATE workflow_triggers SET next_at = next_at - interval '4 hours' WHERE workflow_id = ${workflow}`;
    await turn();
    const times = (await runsOf(workflow)).map(({ scheduled_at }) => scheduled_at);
    expect(new Set(times).size).toBe(expected);
    expect(times).toHaveLength(expected);
    expect(await turn()).toEqual({ started: 0 });
  });

  /** Half an hour from now, so that the clock passes no time of the schedule during the test. */
  const farMinute = () => (new Date().getUTCMinutes() + 30) % 60;

  it("a time that is in the database already starts nothing, whoever moved the schedule back", async () => {
    const workflow = await publish(hourly(", missed: all"));
    await letPass(workflow, "0 hours");
    await turn();
    await letPass(workflow, "0 hours");
    expect(await turn()).toEqual({ started: 0 });
    expect(await runsOf(workflow)).toHaveLength(1);
  });

  it("gives its input, with the time in it", async () => {
    const workflow = await publish(
      hourly(', input: { day: "${{ $substring(input.scheduled_at, 0, 10) }}", n: 1 }'),
    );
    await letPass(workflow, "0 hours");
    await turn();
    const [run] = await runsOf(workflow);
    const { input } = await client()(getRun, { params: { run_id: run?.id ?? "" } });
    expect(input).toEqual({ day: run?.scheduled_at?.slice(0, 10), n: 1 });
  });

  it("that is disabled starts nothing, and makes up for nothing when it is enabled", async () => {
    const workflow = await publish(hourly(", missed: all"));
    const [trigger] = await triggersOf(workflow);
    const params = { trigger_id: trigger?.id ?? "" };
    await letPass(workflow, "5 hours");
    expect(await client()(setWorkflowTrigger, { params, body: { enabled: false } })).toMatchObject({
      next_at: null,
    });
    expect(await turn()).toEqual({ started: 0 });
    const enabled = await client()(setWorkflowTrigger, { params, body: { enabled: true } });
    expect(Date.parse(enabled.next_at ?? "")).toBeGreaterThan(Date.now());
    expect(await turn()).toEqual({ started: 0 });
  });

  it("of a new version that has it too goes on, one that is gone or whose workflow is deleted ends", async () => {
    const workflow = await publish(hourly());
    const [first] = await triggersOf(workflow);
    await publish(`${hourly(", missed: skip")}\n  - { type: webhook }`);
    const both = await triggersOf(workflow);
    expect(both).toMatchObject([{ id: first?.id, missed: "skip", next_at: first?.next_at }, { type: "webhook" }]);
    await publish("  - { type: webhook }");
    expect(await triggersOf(workflow)).toMatchObject([{ id: both[1]?.id }]);
    await publish(hourly());
    expect(await triggersOf(workflow)).toMatchObject([{ id: first?.id }]);
    await letPass(workflow, "1 hour");
    await client()(deleteWorkflow, { params: { workflow_id: workflow } });
    expect(await turn()).toEqual({ started: 0 });
  });

  it("whose runs do not end starts no further one beyond the limit, and the audit says so", async () => {
    const workflow = await publish(hourly());
    const [trigger] = await triggersOf(workflow);
    await letPass(workflow, "0 hours");
    await superuser`
      INSERT INTO workflow_runs (id, org_id, workflow_id, version, status, input, user_id, actor_type, actor_name, role, correlation_id,
        deadline_at, trigger_id)
      SELECT gen_random_uuid(), ${org.id}, ${workflow}, 1, 'queued', '{}', ${uuidv7()}, 'system', 'x', 'system', 'x', now(), ${trigger?.id ?? ""}
      FROM generate_series(1, 1000)`;
    expect(await turn()).toEqual({ started: 0 });
    const { items } = await client()(listAudit, { query: { action: "run.trigger" } });
    expect(items).toMatchObject([{ result: "failed", reason: "trigger_backlog" }]);
  });
});

describe("FLOW-01 a webhook", () => {
  const post = async (path: string, options: { body?: string; headers?: Record<string, string> } = {}) => {
    const response = await fetch(`${api.url}${path}`, { method: "POST", ...options });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  async function open(trigger = "  - { type: webhook }") {
    const workflow = await publish(trigger);
    const [row] = await triggersOf(workflow);
    return { workflow, id: row?.id ?? "", path: row?.path ?? "" };
  }
  const rotate = (trigger_id: string) => client()(rotateWorkflowTrigger, { params: { trigger_id } });
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  it("accepts nothing before it has a token, then only the newest, as Bearer or as the password of its URL", async () => {
    const { id, path, workflow } = await open();
    expect(await post(path)).toMatchObject({ status: 404, body: { code: "hook_refused" } });
    const first = await rotate(id);
    const { token, url } = await rotate(id);
    expect(await post(path, { headers: bearer(first.token) })).toMatchObject({ status: 404 });
    const headers = {
      ...bearer(token),
      "content-type": "application/json",
      "x-github-event": "push",
      "x-secret": "s",
    };
    const started = await post(path, { headers, body: '{"ref":"main"}' });
    expect(started).toMatchObject({ status: 200, body: { replayed: false } });
    const { password, username } = new URL(url);
    const basic = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
    expect(await post(path, { headers: { authorization: basic }, body: "plain" })).toMatchObject({ status: 200 });
    const run = await client()(getRun, { params: { run_id: started.body["run_id"] as string } });
    expect(run).toMatchObject({ trigger: "webhook", started_by: "workflow service user" });
    expect(run.input).toEqual({
      ...{ body: { ref: "main" }, delivery: null },
      headers: expect.objectContaining({ "content-type": "application/json", "x-github-event": "push" }),
    });
    expect(JSON.stringify(run.input)).not.toContain("x-secret");
    expect(await runsOf(workflow)).toHaveLength(2);
    // At rest, only its hash.
    const stored = await superuser`SELECT t::text AS row FROM workflow_triggers t WHERE id = ${id}`;
    expect(JSON.stringify(stored)).not.toContain(token);
  });

  it("starts one run for a delivery, however often it is sent", async () => {
    const { id, path, workflow } = await open();
    const { token } = await rotate(id);
    const headers = { ...bearer(token), [hookHeaders.delivery]: "d-1" };
    const all = await Promise.all(Array.from({ length: 6 }, () => post(path, { headers, body: "{}" })));
    expect(new Set(all.map(({ body }) => body["run_id"])).size).toBe(1);
    expect(all.filter(({ body }) => body["replayed"] === false)).toHaveLength(1);
    expect(await runsOf(workflow)).toHaveLength(1);
    await post(path, { headers: { ...headers, [hookHeaders.delivery]: "d-2" }, body: "{}" });
    expect(await runsOf(workflow)).toHaveLength(2);
  });

  it("with a secret takes what is signed for this time, delivery and body, and nothing else", async () => {
    const value = "a-long-signing-secret";
    await client()(setSecret, { body: { name: "hook-key", value, members_may_use: true } });
    const { path, id, workflow } = await open("  - { type: webhook, secret: hook-key }");
    expect(codeOf(await rotate(id).catch((error) => error))).toBe("trigger_has_no_token");
    const signed = (body: string, { at = Date.now() / 1000, delivery = "d", key = value } = {}) => {
      const timestamp = String(Math.floor(at));
      return {
        body,
        headers: {
          [hookHeaders.timestamp]: timestamp,
          [hookHeaders.delivery]: delivery,
          [hookHeaders.signature]: signatureOf(key, { timestamp, delivery, body }),
        },
      };
    };
    const good = signed('{"a":1}');
    expect(await post(path, good)).toMatchObject({ status: 200, body: { replayed: false } });
    expect(await post(path, good)).toMatchObject({ status: 200, body: { replayed: true } });
    expect(await post(path, { ...good, body: '{"a":2}' })).toMatchObject({ status: 404 });
    const renamed = { ...good.headers, [hookHeaders.delivery]: "another" };
    expect(await post(path, { ...good, headers: renamed })).toMatchObject({ status: 404 });
    expect(await post(path, signed("{}", { key: "guess" }))).toMatchObject({ body: { code: "hook_refused" } });
    for (const at of [Date.now() / 1000 - 400, Date.now() / 1000 + 400]) {
      expect(await post(path, signed("{}", { at, delivery: "e" }))).toMatchObject({
        ...{ status: 401, body: { code: "hook_signature_expired" } },
      });
    }
    expect(await runsOf(workflow)).toHaveLength(1);
    const { items } = await client()(listAudit, { query: { action: "run.trigger" } });
    expect(items.filter(({ result }) => result === "denied")).toHaveLength(5);
  });

  it("that is unknown, removed or of a schedule looks like a wrong token", async () => {
    const workflow = await publish(`  - { type: webhook }\n${hourly()}`);
    const triggers = await triggersOf(workflow);
    const idOf = (wanted: string) => triggers.find(({ type }) => type === wanted)?.id ?? "";
    const hook = `/v1/hooks/${idOf("webhook")}`;
    const { token } = await rotate(idOf("webhook"));
    const unknown = await Promise.all(
      [uuidv7(), "no-id", idOf("cron")].map((one) => post(`/v1/hooks/${one}`, { headers: bearer(token) })),
    );
    const wrong = await post(hook, { headers: bearer("hfk_wrong") });
    for (const { status, body } of unknown) {
      expect([status, body["code"], body["message"]]).toEqual([
        wrong.status,
        wrong.body["code"],
        wrong.body["message"],
      ]);
    }
    await publish(hourly());
    expect(await post(hook, { headers: bearer(token) })).toMatchObject({ status: 404 });
    // A later version has it again: its URL stays, and whoever has the old token gets nothing by that.
    await publish(`  - { type: webhook }\n${hourly()}`);
    expect(await post(hook, { headers: bearer(token) })).toMatchObject({ status: 404 });
    const again = await rotate(idOf("webhook"));
    expect(await post(hook, { headers: bearer(again.token) })).toMatchObject({ status: 200 });
  });

  it("passes a body that is nested too deeply on as text", async () => {
    const { id, path, workflow } = await open();
    const { token } = await rotate(id);
    const body = `${"[".repeat(100_000)}"]"${"]".repeat(100_000)}`;
    expect(await post(path, { headers: bearer(token), body })).toMatchObject({ status: 200 });
    const [run] = await runsOf(workflow);
    const [row] = await superuser`SELECT input->>'body' AS body FROM workflow_runs WHERE id = ${run?.id ?? ""}`;
    expect(row?.["body"]).toBe(body);
  });

  it("refuses what is too large, what comes too often, and everything while it is disabled", async () => {
    const { id, path } = await open();
    const { token } = await rotate(id);
    const headers = bearer(token);
    expect(await post(path, { headers, body: "x".repeat(256 * 1024 + 1) })).toMatchObject({
      ...{ status: 413, body: { code: "body_too_large", details: { limit_bytes: 262_144 } } },
    });
    await client()(setWorkflowTrigger, { params: { trigger_id: id }, body: { enabled: false } });
    expect(await post(path, { headers })).toMatchObject({ status: 409, body: { code: "trigger_disabled" } });
    await client()(setWorkflowTrigger, { params: { trigger_id: id }, body: { enabled: true } });
    await superuser`UPDATE rate_limits SET attempts = 600`;
    expect(await post(path, { headers })).toMatchObject({ status: 429, body: { code: "rate_limit_exceeded" } });
    await superuser`DELETE FROM rate_limits`;
    for (let count = 0; count < 60; count += 1) await post("/v1/hooks/none");
    expect(await post("/v1/hooks/none")).toMatchObject({ status: 429 });
  });
});
