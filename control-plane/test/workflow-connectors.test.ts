// Connectors in the worker, with a real api that hands out their secrets, a real database, and a service on loopback.

import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { getRun, listRunEvents, retryRun, startRun } from "@holdfast/contracts/endpoints/runs";
import { setSecret } from "@holdfast/contracts/endpoints/secrets";
import { applyWorkflow, publishWorkflow } from "@holdfast/contracts/endpoints/workflows";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import {
  addMember,
  type Browser,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
  tokenFor,
} from "../../testkit/api/api.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { standIn } from "../../workflows/test/connectors/server.ts";
import type { Sql } from "../src/database/connect.ts";
import { openSignals, type Signals } from "../src/mechanisms/signals.ts";
import { continueRuns, type EngineOptions } from "../src/workflows/engine/turn.ts";
import { askForSecrets } from "../src/workflows/step-secrets/ask.ts";
import { newRecipient, publicBytes } from "../src/workflows/step-secrets/sealed.ts";

const VALUE = "ghp_CANARY-of-the-connector";
const log = createLog({ process: "test", level: "silent" });
let api: TestApi;
let system: Sql;
let superuser: Sql;
let signals: Signals;
let org: TestOrg;
let owner: Browser;

beforeAll(async () => {
  api = await startTestApi();
  ({ system, superuser } = openRoles(api.database));
  signals = await openSignals(system, log);
});
afterAll(() => signals.stop());

beforeEach(async () => {
  const slug = `org-${uuidv7().slice(-12)}`;
  org = await createOrg(api, slug);
  owner = await addMember(api, org, `owner@${slug}.example`, "owner");
  await client()(setSecret, { body: { name: "gh", value: VALUE } });
});

const client = () => owner.client(org.id);
const turn = (changes: Partial<EngineOptions> = {}) =>
  continueRuns({
    ...{
      system,
      log,
      pollMs: 100,
      concurrency: 10,
      stepTimeoutMs: 30_000,
      runsPerOrg: 100,
      queue: "workflow-continuations",
    },
    ...{ allowedNetworks: ["127.0.0.1"], gateway: { url: undefined, token: undefined } },
    askForSecret: askForSecrets({ system, signals }),
    ...changes,
  });

const sourceOf = (node: object) =>
  JSON.stringify({ version: "1", nodes: { step: { type: "connector.action", ...node } } });

async function start(node: object): Promise<string> {
  const { id, problems } = await client()(applyWorkflow, { body: { name: "flow", source: sourceOf(node) } });
  expect(problems).toEqual([]);
  const params = { workflow_id: id };
  await client()(publishWorkflow, { params, body: {} });
  return (await client()(startRun, { params, body: {} })).id;
}
const shown = (run_id: string) => client()(getRun, { params: { run_id } });
const eventsOf = async (run_id: string) => (await client()(listRunEvents, { params: { run_id } })).items;
const comment = (baseUrl: string, more: object = {}) => ({
  ...{ connector: "github", action: "issue.comment", secret: "gh" },
  input: { repo: "acme/shop", issue: 7, body: "Done.", baseUrl },
  ...more,
});
const github = () =>
  standIn(() => ({ status: 201, body: { id: 1, html_url: `https://github.example/${VALUE}` } }));

describe("a connector in the worker", () => {
  it("FLOW-02 SEC-02 acts with the secret of its organization, which is in the audit and nowhere else", async () => {
    const service = await github();
    const run = await start(comment(service.url));
    await turn();
    const output = { step: { id: 1, url: "https://github.example/[redacted]" } };
    expect(await shown(run)).toMatchObject({ status: "succeeded", output });
    expect(service.got).toMatchObject([
      { path: "/repos/acme/shop/issues/7/comments", headers: { authorization: `Bearer ${VALUE}` } },
    ]);
    expect(JSON.stringify(await eventsOf(run))).not.toContain(VALUE);
    const { items } = await client()(listAudit, { query: { action: "secret.use" } });
    expect(items).toMatchObject([{ action: "secret.use", details: { request_id: `${run}:step:1` } }]);
    expect(await superuser`SELECT FROM workflow_step_secrets`).toHaveLength(0);
    const [row] = await superuser`SELECT r.*::text AS text FROM workflow_runs r WHERE id = ${run}`;
    expect(JSON.stringify(row)).not.toContain(VALUE);
  });

  it("SEC-02 fails clearly with a secret that the organization does not have", async () => {
    const service = await github();
    const run = await start(comment(service.url, { secret: "other", retry: { attempts: 3 } }));
    await turn();
    expect(await shown(run)).toMatchObject({
      status: "failed",
      failure: { message: expect.stringContaining('"other"') },
    });
    expect((await eventsOf(run)).map(({ type }) => type)).toContain("node_failed");
    expect(service.got).toEqual([]);
  });

  it("SEC-02 a run that is retried acts for whoever retries it, and not for the person who started it", async () => {
    const service = await github();
    service.next({ status: 422 });
    const run = await start(comment(service.url));
    await turn();
    expect(await shown(run)).toMatchObject({ status: "failed" });
    expect(service.got).toHaveLength(1);
    // A token that stands for no person; members may not use the secret.
    const token = api.as(await tokenFor(api, org, "admin"), org.id);
    const { id: workflow_id } = await token(applyWorkflow, {
      body: {
        name: "flow",
        source: sourceOf(comment(service.url, { input: { ...comment(service.url).input, body: "Mine." } })),
      },
    });
    await token(publishWorkflow, { params: { workflow_id }, body: {} });
    await token(retryRun, { params: { run_id: run }, body: { version: 2 } });
    await turn();
    expect(await shown(run)).toMatchObject({
      status: "failed",
      failure: { message: expect.stringContaining('"gh"') },
    });
    expect(service.got).toHaveLength(1);
    await client()(retryRun, { params: { run_id: run }, body: {} });
    await turn();
    expect(await shown(run)).toMatchObject({ status: "succeeded" });
    expect(service.got).toHaveLength(2);
  });

  it("SEC-02 hands out no secret for a step that does not run, or to another organization", async () => {
    const service = await github();
    const run = await start(comment(service.url));
    const ask = askForSecrets({ system, signals });
    const wanted = { orgId: org.id, runId: run, node: "step", attempt: 1 };
    expect(await ask(wanted)).toEqual({ refusal: "The step does not run." });
    await turn();
    expect(await ask(wanted)).toEqual({ refusal: "The step does not run." });
    const other = await createOrg(api, `org-${uuidv7().slice(-12)}`);
    await expect(ask({ ...wanted, orgId: other.id })).rejects.toThrow(/foreign key/);
  });

  it("SEC-02 a request that cannot be answered keeps no other one waiting", async () => {
    let turning: Promise<unknown> | undefined;
    onTestFinished(() => turning as Promise<void> | undefined);
    const service = await github();
    service.next({ status: 200, instead: "silence" });
    const run = await start(comment(service.url));
    turning = turn({ stepTimeoutMs: 600_000 });
    await expect.poll(() => service.got.length, { timeout: 60_000 }).toBe(1);
    const id = uuidv7();
    await superuser`
      INSERT INTO workflow_step_secrets (id, org_id, run_id, node, attempt, public_key)
      VALUES (${id}, ${org.id}, ${run}, 'step', 1, 'no key')`;
    const ask = askForSecrets({ system, signals }, { longestMs: 60_000 });
    expect(await ask({ orgId: org.id, runId: run, node: "step", attempt: 1 })).toEqual({ value: VALUE });
    const [row] = await superuser`SELECT refusal FROM workflow_step_secrets WHERE id = ${id}`;
    expect(row).toEqual({ refusal: "The api could not hand out the secret. Its log says why." });
    await superuser`DELETE FROM workflow_step_secrets WHERE id = ${id}`;
  });

  it("SEC-02 what a worker that died has asked for is removed, and nobody can open it", async () => {
    const service = await github();
    const run = await start(comment(service.url));
    await superuser`
      INSERT INTO workflow_step_secrets (id, org_id, run_id, node, attempt, public_key, created_at)
      VALUES (${uuidv7()}, ${org.id}, ${run}, 'step', 1, ${publicBytes(newRecipient().publicKey)}, now() - interval '2 minutes')`;
    signals.publish("step_secret_wanted", [run]);
    await expect.poll(async () => (await superuser`SELECT FROM workflow_step_secrets`).length).toBe(0);
  });

  it("FLOW-04 without an api, a step fails in a way that a retry may follow", async () => {
    const service = await github();
    const run = await start(comment(service.url, { retry: { attempts: 2, delay: "1h" } }));
    await turn({ askForSecret: async () => "late" });
    const retried = (await eventsOf(run)).find(({ type }) => type === "node_retried");
    expect(retried?.data).toMatchObject({ failure: { code: "secret_late" } });
  });

  it("SEC-04 does not reach loopback unless the operator allows it", async () => {
    const service = await github();
    const run = await start(comment(service.url));
    await turn({ allowedNetworks: [] });
    expect(await shown(run)).toMatchObject({ status: "failed" });
    expect(JSON.stringify(await eventsOf(run))).toContain("address_refused");
    expect(service.got).toEqual([]);
  });

  it("FLOW-04 waits as long as the service asks for, and does not repeat what was refused", async () => {
    const service = await github();
    service.next({ status: 429, headers: { "retry-after": "3000" } });
    const run = await start(comment(service.url, { retry: { attempts: 2, delay: "1s" } }));
    const before = Date.now();
    await turn();
    const retried = (await eventsOf(run)).find(({ type }) => type === "node_retried");
    const { notBefore } = (retried?.data ?? {}) as { notBefore?: string };
    expect(Date.parse(notBefore ?? "") - before).toBeGreaterThanOrEqual(3_000_000);
    service.next({ status: 422 });
    const refused = await start(comment(service.url, { retry: { attempts: 5, delay: "1s" } }));
    await turn();
    expect(await shown(refused)).toMatchObject({ status: "failed" });
  });

  it("FLOW-02 a worker that dies with an action under way does not repeat it, unless it is idempotent", async () => {
    const service = await github();
    const status = { state: "success", sha: "0".repeat(40), repo: "acme/shop", baseUrl: service.url };
    const runs = [
      await start(comment(service.url)),
      await start(comment(service.url, { action: "status.create", input: status })),
    ];
    // Dies before the answer is written: the events of the attempt are there.
    await turn({ askForSecret: () => Promise.reject(new Error("killed")) });
    await superuser`UPDATE workflow_runs SET claimed_until = now() - interval '1 second' WHERE claimed_until IS NOT NULL`;
    service.next({ status: 201, body: { id: 2, url: "https://github.example/2" } });
    await turn();
    expect(JSON.stringify(await eventsOf(runs[0] as string))).toContain("outcome_unknown");
    expect(await shown(runs[1] as string)).toMatchObject({ status: "succeeded" });
    expect(service.got.map(({ path }) => path)).toEqual([`/repos/acme/shop/statuses/${status.sha}`]);
  });
});
