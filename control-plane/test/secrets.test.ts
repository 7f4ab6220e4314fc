// Secrets over HTTP and in dispatches, on a real api and database: who sees what, what is stored, and who got a value.

import { codeOf } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import {
  deleteSecret,
  getKekStatus,
  getSecret,
  listSecrets,
  rewrapKeys,
  rotateSecret,
  setSecret,
} from "@holdfast/contracts/endpoints/secrets";
import type { DispatchBody } from "@holdfast/contracts/execution/dispatch";
import { openAgentSession, type RequestVerdict, requestExecutions } from "@holdfast/contracts/internal/executions";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  addMember,
  type Browser,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import { dispatchBody } from "../../testkit/api/executions.ts";
import { enrollGateway, SERVICE_TOKEN, type TestGateway } from "../../testkit/api/services.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { makeAgentSecret } from "../src/agents/tokens.ts";
import { type Sql, withOrg } from "../src/database/connect.ts";

const VALUE = "CANARY-value-of-the-secret";
let api: TestApi;
let gateway: TestGateway;
let superuser: Sql;
let app: Sql;
let org: TestOrg;
let owner: Browser;
let member: Browser;

beforeAll(async () => {
  api = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN } });
  ({ superuser, app } = openRoles(api.database));
  gateway = await enrollGateway(api);
});

beforeEach(async () => {
  const slug = `org-${uuidv7().slice(-12)}`;
  org = await createOrg(api, slug);
  owner = await addMember(api, org, `owner@${slug}.example`, "owner");
  member = await addMember(api, org, `member@${slug}.example`, "member");
});

const client = (who = owner) => who.client(org.id);
const set = (name = "deploy-key", value = VALUE, more: { members_may_use?: boolean } = {}) =>
  client()(setSecret, { body: { name, value, ...more } });
const stored = async (id: string) => {
  const [row] = await superuser`SELECT * FROM secrets WHERE id = ${id}`;
  return row ?? {};
};

/** Connected to the test's gateway, which is sent the offer with the verdict. */
async function connectAgent(of = org): Promise<void> {
  const id = uuidv7();
  await superuser`
    INSERT INTO execution_agents (id, org_id, name, token_hash, creator_name, agent_version, kinds, tags, max_in_flight)
    VALUES (${id}, ${of.id}, 'edge-1', ${makeAgentSecret(of.id).hash}, 'test', '1', '{agent.execute}', '{}', 10)`;
  const { status } = await gateway.ask(openAgentSession, {
    body: {
      ...{ agent_id: id, session_id: uuidv7(), agent_version: "1", protocol_version: 1, holding: [] },
      ...{ capabilities: { kinds: ["agent.execute"] }, key_set_version: 0 },
      ...{ journal_id: null, draining: false, again: false },
    },
  });
  expect(status).toBe(200);
}

async function dispatch(changes: Partial<DispatchBody> = {}, of = org): Promise<RequestVerdict> {
  const body = { ...dispatchBody(of.id), requestedByUserId: owner.me.id, ...changes };
  const { body: answer } = await gateway.ask(requestExecutions, {
    body: { requests: [{ body, correlation_id: uuidv7() }] },
  });
  return (answer["verdicts"] as RequestVerdict[])[0] as RequestVerdict;
}

const secretOf = (verdict: RequestVerdict) =>
  verdict.state === "assigned" ? verdict.offer?.secret : verdict.state;
const refusalOf = (verdict: RequestVerdict) => (verdict.state === "refused" ? verdict.message : verdict.state);

describe("a secret", () => {
  it("SEC-02 is set, replaced and listed without its value ever being returned", async () => {
    const first = await set();
    expect(first).toMatchObject({
      name: "deploy-key",
      version: 1,
      members_may_use: false,
      uses: 0,
      last_used_at: null,
    });
    const second = await set("deploy-key", `${VALUE}-2`);
    expect(second).toMatchObject({ id: first.id, version: 2, created_at: first.created_at });
    const { items } = await client()(listSecrets, {});
    expect(items).toEqual([second]);
    const shown = await client()(getSecret, { params: { secret_id: first.id } });
    expect(shown).toEqual({ ...second, used_by: { workflows: [], executions: [] } });
    const audit = await client()(listAudit, { query: { limit: 50 } });
    expect(audit.items.filter(({ action }) => action === "secret.set")).toHaveLength(2);
    expect(JSON.stringify([items, shown, audit]) + api.logged()).not.toContain("CANARY");
  });

  it("SEC-02 is stored sealed, with a data key of its own, also when the value is the same", async () => {
    const [one, two] = [await set("one"), await set("two")];
    const rows = [await stored(one.id), await stored(two.id)];
    for (const row of rows) {
      for (const column of Object.values(row)) {
        const bytes = Buffer.isBuffer(column) ? column : Buffer.from(String(column));
        expect(bytes.includes(VALUE)).toBe(false);
      }
    }
    expect(rows[0]?.["wrapped_key"]).not.toEqual(rows[1]?.["wrapped_key"]);
    expect(rows[0]?.["sealed_value"]).not.toEqual(rows[1]?.["sealed_value"]);
  });

  it("SEC-02 is not readable for the role that serves people, and leaves no digest in idempotency keys", async () => {
    await set();
    await expect(withOrg(app, org.id, (tx) => tx`SELECT sealed_value FROM secrets`)).rejects.toMatchObject({
      code: "42501",
    });
    await expect(withOrg(app, org.id, (tx) => tx`SELECT wrapped_key FROM secrets`)).rejects.toMatchObject({
      code: "42501",
    });
    const before = await superuser`SELECT count(*) FROM idempotency_keys`;
    await client()(setSecret, { body: { name: "keyed", value: VALUE }, idempotencyKey: "a-key" });
    expect(await superuser`SELECT count(*) FROM idempotency_keys`).toEqual(before);
  });

  it("SEC-02 rotates to a new value, or keeps its value under a new data key", async () => {
    await connectAgent();
    const { id } = await set();
    const before = await stored(id);
    const params = { secret_id: id };
    const rekeyed = await client()(rotateSecret, { params, body: {} });
    const after = await stored(id);
    expect(rekeyed.version).toBe(1);
    expect(after["wrapped_key"]).not.toEqual(before["wrapped_key"]);
    expect(after["sealed_value"]).not.toEqual(before["sealed_value"]);
    expect(secretOf(await dispatch({ secretName: "deploy-key" }))).toBe(VALUE);
    expect(await client()(rotateSecret, { params, body: { value: `${VALUE}-next` } })).toMatchObject({
      version: 2,
    });
    expect(secretOf(await dispatch({ secretId: id }))).toBe(`${VALUE}-next`);
    const { items } = await client()(listAudit, { query: { limit: 50 } });
    const rotations = items.filter(({ action }) => action === "secret.rotate").map(({ details }) => details);
    expect(rotations).toEqual([
      { version: 2, replaced: "value" },
      { version: 1, replaced: "data key" },
    ]);
  });

  it.for([
    ["a name with a space", { name: "a b" }],
    ["a name that starts with a digit", { name: "1password" }],
    ["a name of 65 characters", { name: "a".repeat(65) }],
    ["a value that cannot be redacted", { value: "1234567" }],
    ["a value of more than 65,536 characters", { value: "x".repeat(65_537) }],
    ["a value with a NUL", { value: "value\0value" }],
  ] as const)("SEC-02 is refused with %s, without repeating the value", async ([, changes]) => {
    const body = { name: "ok", value: VALUE, ...changes };
    const error = await client()(setSecret, { body }).catch((thrown: unknown) => thrown);
    expect(codeOf(error)).toBe("invalid_request");
    expect(JSON.stringify(error) + api.logged()).not.toContain(body.value);
  });

  it("SEC-02 can have 65,536 characters of any language", async () => {
    await connectAgent();
    const value = "漢".repeat(65_536);
    await set("large", value);
    expect(secretOf(await dispatch({ secretName: "large" }))).toBe(value);
  });

  it("SEC-01 is managed by owners and admins; members see what they may use", async () => {
    const hidden = await set("hidden");
    const usable = await set("usable", VALUE, { members_may_use: true });
    expect((await client(member)(listSecrets, {})).items.map(({ name }) => name)).toEqual(["usable"]);
    const show = (id: string) => client(member)(getSecret, { params: { secret_id: id } });
    expect(await show(usable.id)).toMatchObject({ name: "usable" });
    await expect(show(hidden.id)).rejects.toMatchObject({ envelope: { code: "not_found" } });
    const attempts = [
      () => client(member)(setSecret, { body: { name: "mine", value: VALUE } }),
      () => client(member)(rotateSecret, { params: { secret_id: usable.id }, body: {} }),
      () => client(member)(deleteSecret, { params: { secret_id: usable.id } }),
    ];
    for (const attempt of attempts) {
      await expect(attempt()).rejects.toMatchObject({ envelope: { code: "forbidden" } });
    }
    expect((await set("usable")).members_may_use, "stays as it was").toBe(true);
  });

  it("SEC-02 that was used is deleted on request only, and shows what used it", async () => {
    await connectAgent();
    const { id } = await set();
    const params = { secret_id: id };
    const first = await dispatch({ secretName: "deploy-key", workflowId: "nightly" });
    await dispatch({ secretName: "deploy-key", workflowId: "nightly" });
    await dispatch({ secretName: "deploy-key", workflowId: "release" });
    const shown = await client()(getSecret, { params });
    expect(shown).toMatchObject({ uses: 3, last_used_at: expect.any(String) });
    expect(shown.used_by.workflows).toMatchObject([
      { workflow_id: "release", uses: 1 },
      { workflow_id: "nightly", uses: 2 },
    ]);
    expect(shown.used_by.executions).toHaveLength(3);
    expect(shown.used_by.executions.at(-1)).toMatchObject({ request_id: first.request_id, version: 1 });
    await expect(client()(deleteSecret, { params })).rejects.toMatchObject({
      envelope: { code: "secret_in_use", details: { uses: 3, workflows: ["release", "nightly"] } },
    });
    await client()(deleteSecret, { params, query: { force: "true" } });
    expect(await stored(id)).toEqual({});
    expect(refusalOf(await dispatch({ secretName: "deploy-key" }))).toMatch(/no secret "deploy-key"/);
    const unused = await set("unused");
    await client()(deleteSecret, { params: { secret_id: unused.id } });
  });
});

describe("a dispatch with a named secret", () => {
  it("SEC-02 gives the value to the agent, stores it sealed with the request, and audits who got it", async () => {
    await connectAgent();
    const { id } = await set();
    const verdict = await dispatch({ secretName: "deploy-key", workflowId: "nightly" });
    expect(secretOf(verdict)).toBe(VALUE);
    const [row] =
      await superuser`SELECT *, executions::text AS whole FROM executions WHERE request_id = ${verdict.request_id}`;
    expect(row).toMatchObject({ secret_id: id, secret_version: 1, sealed_secret: expect.any(Buffer) });
    expect(row?.["sealed_secret"].includes(VALUE)).toBe(false);
    expect(row?.["whole"]).not.toContain(Buffer.from(VALUE).toString("hex"));
    const { items } = await client()(listAudit, { query: { limit: 50 } });
    expect(items.filter(({ action }) => action === "secret.use")).toMatchObject([
      {
        ...{
          actor_name: "dispatch",
          target_type: "secret",
          target_id: id,
          target_name: "deploy-key",
          result: "allowed",
        },
        details: { request_id: verdict.request_id, workflow_id: "nightly", user_id: owner.me.id, version: 1 },
      },
    ]);
    expect(api.logged()).not.toContain("CANARY");
  });

  it("SEC-02 is refused alike for a secret that is unknown, foreign, or not for this person", async () => {
    const theirs = await createOrg(api, `other-${uuidv7().slice(-12)}`);
    const stranger = await addMember(api, theirs, `x@${theirs.slug}.example`, "owner");
    const { id } = await set("ours");
    const name = '"ours"';
    const messages = [
      [name, await dispatch({ secretName: "ours", requestedByUserId: stranger.me.id ?? "" }, theirs)],
      [name, await dispatch({ secretName: "ours", requestedByUserId: stranger.me.id ?? "" })],
      [name, await dispatch({ secretName: "ours", requestedByUserId: member.me.id ?? "" })],
      [name, await dispatch({ secretName: "ours", requestedByUserId: uuidv7() })],
      ['"none"', await dispatch({ secretName: "none" })],
      [`with the id ${id}`, await dispatch({ secretId: id, requestedByUserId: stranger.me.id ?? "" }, theirs)],
    ] as const;
    for (const [which, verdict] of messages) {
      expect(refusalOf(verdict)).toBe(`The organization has no secret ${which} that requestedByUserId may use.`);
    }
    expect(await superuser`SELECT FROM executions WHERE org_id IN (${org.id}, ${theirs.id})`).toHaveLength(0);
    expect(
      await superuser`SELECT FROM audit_events WHERE action = 'secret.use' AND org_id = ${org.id}`,
    ).toHaveLength(0);
    await connectAgent();
    await set("ours", VALUE, { members_may_use: true });
    expect(secretOf(await dispatch({ secretName: "ours", requestedByUserId: member.me.id ?? "" }))).toBe(VALUE);
  });

  it("SEC-02 does not open a row that was moved, put back, or whose KEK is gone, and says so without failing", async () => {
    const [one, two] = [await set("one"), await set("two")];
    await superuser`
      UPDATE secrets SET wrapped_key = o.wrapped_key, sealed_value = o.sealed_value FROM secrets o
      WHERE o.id = ${one.id} AND secrets.id = ${two.id}`;
    expect(refusalOf(await dispatch({ secretName: "two" }))).toMatch(/does not open/);
    const older = await stored(one.id);
    await set("one", `${VALUE}-2`);
    await superuser`
      UPDATE secrets SET wrapped_key = ${older["wrapped_key"]}, sealed_value = ${older["sealed_value"]} WHERE id = ${one.id}`;
    expect(refusalOf(await dispatch({ secretName: "one" })), "an older value was put back").toMatch(
      /does not open/,
    );
    await superuser`UPDATE secrets SET kek_id = 'lost' WHERE id = ${one.id}`;
    expect(refusalOf(await dispatch({ secretName: "one" }))).toMatch(/KEK "lost", but this process has "local-1"/);
    const rotation = client()(rotateSecret, { params: { secret_id: one.id }, body: {} });
    await expect(rotation).rejects.toMatchObject({ envelope: { code: "kek_missing" } });
    const status = await api.operator()(getKekStatus, {});
    expect(status).toMatchObject({ current: "local-1", previous: null, waiting: 1, unneeded: false });
    const rewrap = api.operator()(rewrapKeys, { body: { to: "local-1" } });
    await expect(rewrap).rejects.toMatchObject({ envelope: { code: "kek_missing" } });
    await superuser`DELETE FROM secrets WHERE id = ${one.id}`;
    expect(await api.operator()(getKekStatus, {})).toMatchObject({ waiting: 0, unneeded: true, obstacles: [] });
    const other = api.operator()(rewrapKeys, { body: { to: "another" } });
    await expect(other).rejects.toMatchObject({ envelope: { code: "kek_differs" } });
  });

  it("TASK-05 names one secret only", async () => {
    const both = await gateway.ask(requestExecutions, {
      body: {
        requests: [
          { body: { ...dispatchBody(org.id), secret: VALUE, secretName: "one" }, correlation_id: uuidv7() },
        ],
      },
    });
    expect(both.status).toBe(400);
    expect(JSON.stringify(both.body)).not.toContain(VALUE);
  });
});
