// An allocation belongs to somebody: what other members can and cannot do with it, what a grant allows and for how
// long, and what happens to it when its owner leaves. Through the real listeners, with a gateway played by the test.

import { CallError, type Client } from "@holdfast/contracts/client";
import type { Endpoint } from "@holdfast/contracts/endpoint";
import {
  type Allocation,
  createAllocation,
  createAllocationGrant,
  getAllocation,
  listAllocationGrants,
  listAllocations,
  releaseAllocation,
  revokeAllocationGrant,
  transferAllocation,
} from "@holdfast/contracts/endpoints/allocations";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { removeMember, updateMember } from "@holdfast/contracts/endpoints/members";
import { getTask, listTasks } from "@holdfast/contracts/endpoints/tasks";
import {
  closeTerminal,
  createTerminalToken,
  listTerminals,
  reportTerminalFailure,
} from "@holdfast/contracts/endpoints/terminals";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { claimTerminalToken, reportTerminalEvents } from "@holdfast/contracts/internal/endpoints";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  addMember,
  type Browser,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
} from "../../testkit/api/api.ts";
import { insertNode, type TestNode } from "../../testkit/api/replica.ts";
import { enrollGateway, type Following, SERVICE_TOKEN, type TestGateway } from "../../testkit/api/services.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { expireGrants } from "../src/allocations/expire-grants.ts";
import type { Sql } from "../src/database/connect.ts";

let api: TestApi;
let superuser: Sql;
let system: Sql;
let kelp: TestOrg;
let node: TestNode;
let gateway: TestGateway;
let ada: Browser;
let bob: Browser;
let admin: Browser;
/** Owned by Ada, created for each test. */
let allocation: Allocation;

beforeAll(async () => {
  api = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN } });
  ({ superuser, system } = openRoles(api.database));
  kelp = await createOrg(api, "kelp");
  node = await insertNode(superuser, kelp.id, { name: "reef-1" });
  gateway = await enrollGateway(api);
  ada = await addMember(api, kelp, "ada@kelp.example", "member");
  bob = await addMember(api, kelp, "bob@kelp.example", "member");
  admin = await addMember(api, kelp, "admin@kelp.example", "admin");
});

beforeEach(async () => {
  await gateway.announce();
  await superuser`DELETE FROM terminal_sessions`;
  await superuser`DELETE FROM allocation_grants`;
  await superuser`UPDATE allocations SET status = 'released', released_at = now() WHERE status <> 'released'`;
  allocation = await create(ada);
});

const as = (person: Browser): Client => person.client(kelp.id);
const idOf = (person: Browser): string => person.me.id ?? "";

/** Its user exists on the node. */
async function create(by: Browser, more: { owner_id?: string } = {}): Promise<Allocation> {
  const username = `u${uuidv7().slice(-8)}`;
  const made = await as(by)(createAllocation, { body: { node_id: node.id, username, ...more } });
  await superuser`UPDATE allocations SET status = 'active', active_at = now() WHERE id = ${made.id}`;
  return made;
}

const mint = (by: Client, id = allocation.id) =>
  by(createTerminalToken, { params: { allocation_id: id }, body: {} });
const share = (to: Browser, level: "view" | "use", by = ada) =>
  as(by)(createAllocationGrant, { params: { allocation_id: allocation.id }, body: { user_id: idOf(to), level } });
const sees = async (by: Browser) =>
  (await as(by)(listAllocations, { query: { status: "active" } })).items.map(({ id }) => id);

async function openTerminal(by: Client): Promise<string> {
  const { token, session_id } = await mint(by);
  await gateway.ask(claimTerminalToken, { body: { token } });
  const at = new Date().toISOString();
  const events = [{ type: "step", step: "pty_ready", at } as const];
  await gateway.ask(reportTerminalEvents, { params: { session_id }, body: { events } });
  return session_id;
}

const closeRequest = (news: Following, sessionId: string) =>
  news.next((line) => line.type === "close_terminal" && line.session_id === sessionId);

async function refusal(request: Promise<unknown>) {
  const error = await request.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof CallError)) throw new Error(`not refused: ${JSON.stringify(error)}`);
  const { correlation_id, ...envelope } = error.envelope;
  return { status: error.status, ...envelope, correlation_id };
}

const auditOf = async (query: { action?: string; target?: string; correlation_id?: string }) =>
  (await as(admin)(listAudit, { query })).items;

describe("another member's allocation", () => {
  it("SEC-01 looks unknown at every endpoint, and the attempts are audited as denied", async () => {
    const session_id = await openTerminal(as(ada));
    const user_id = idOf(ada);
    const params = { allocation_id: allocation.id };
    const attempts: [Endpoint, Record<string, string>, object?][] = [
      [getAllocation, params],
      [releaseAllocation, params],
      [listAllocationGrants, params],
      [createAllocationGrant, params, { user_id: idOf(bob), level: "use" }],
      [revokeAllocationGrant, { ...params, user_id }],
      [createTerminalToken, params, {}],
      [closeTerminal, { terminal_id: session_id }],
      [reportTerminalFailure, { terminal_id: session_id }, { code: "terminal_ui_connecting_stuck" }],
      [getTask, { task_id: allocation.task_id ?? "" }],
    ];
    for (const [endpoint, ids, body] of attempts) {
      const call = (of: Record<string, string>) =>
        refusal(as(bob)(endpoint, { params: of, ...(body ? { body } : {}) } as never));
      const unknown = await call(Object.fromEntries(Object.keys(ids).map((key) => [key, uuidv7()])));
      const { correlation_id, ...theirs } = await call(ids);
      expect(theirs, endpoint.name).toEqual({ ...unknown, correlation_id: undefined });
      expect(theirs.status, endpoint.name).toBe(404);
      if (!endpoint.action) continue;
      const [event] = await auditOf({ correlation_id });
      expect(event, endpoint.name).toMatchObject({
        ...{ actor_name: "bob@kelp.example", action: endpoint.action, result: "denied", reason: "forbidden" },
        target_id: Object.values(ids)[0],
      });
    }
    expect((await as(ada)(getAllocation, { params })).status).toBe("active");
  });

  it("SEC-01 is in no list, and waiting for it ends at once", async () => {
    const session_id = await openTerminal(as(ada));
    expect(await sees(bob)).toEqual([]);
    expect((await as(bob)(listTerminals, {})).items).toEqual([]);
    const tasks = (await as(bob)(listTasks, { query: { node_id: node.id } })).items.map(({ id }) => id);
    expect(tasks).not.toContain(allocation.task_id);
    const query = { wait_seconds: 25 };
    const waits = [
      as(bob)(getAllocation, { params: { allocation_id: allocation.id }, query }),
      as(bob)(getTask, { params: { task_id: allocation.task_id ?? "" }, query }),
    ];
    for (const refused of await Promise.all(waits.map(refusal))) expect(refused).toMatchObject({ status: 404 });
    expect(await sees(ada)).toContain(allocation.id);
    expect((await as(ada)(listTerminals, {})).items.map(({ id }) => id)).toContain(session_id);
    expect((await as(ada)(listTasks, {})).items.map(({ id }) => id)).toContain(allocation.task_id);
  });

  it("SEC-01 is not named when somebody asks for the same user", async () => {
    const body = { node_id: node.id, username: allocation.username };
    const { code, details } = await refusal(as(bob)(createAllocation, { body }));
    expect({ code, details }).toEqual({ code: "allocation_exists", details: {} });
    const own = await refusal(as(ada)(createAllocation, { body }));
    expect(own.details).toMatchObject({ allocation: allocation.id });
  });

  it("SEC-01 is open to administrators and to API tokens of its owner", async () => {
    const { token } = await as(ada)(createToken, { body: { name: "laptop" } });
    const seen = await api.as(token)(getAllocation, { params: { allocation_id: allocation.id } });
    const owner = { type: "user", id: idOf(ada), name: "ada@kelp.example", active: true };
    expect(seen).toMatchObject({ owner, access: "manage", access_until: null });
    await mint(api.as(token));
    await mint(as(admin));
    expect(await sees(admin)).toContain(allocation.id);
  });

  it("SEC-01 stays closed to an administrator's token without the scope for it", async () => {
    const body = { name: "narrow", role: "admin", scopes: ["allocations:read", "terminals:use"] } as const;
    const { token } = await as(admin)(createToken, { body: { ...body, scopes: [...body.scopes] } });
    expect(await refusal(mint(api.as(token)))).toMatchObject({ status: 404 });
  });

  it("SEC-01 belongs to the token that made it where no person stands behind the token", async () => {
    const { id, token } = await api.operator(kelp.id)(createToken, { body: { name: "ci", role: "member" } });
    const body = { node_id: node.id, username: `u${uuidv7().slice(-8)}` };
    const made = await api.as(token)(createAllocation, { body });
    expect(made).toMatchObject({ owner: { type: "token", id, name: "ci", active: true }, access: "manage" });
    expect(await sees(bob)).toEqual([]);
    expect((await api.as(token)(listAllocations, { query: { owner: "me" } })).items).toHaveLength(1);
  });
});

describe("a grant", () => {
  it("SEC-01 to view shows the allocation, and nothing more", async () => {
    const grant = await share(bob, "view");
    const [days] = [(Date.parse(grant.expires_at) - Date.parse(grant.granted_at)) / 86_400_000];
    expect({ ...grant, days: Math.round(days ?? 0) }).toMatchObject({
      level: "view",
      email: "bob@kelp.example",
      days: 7,
    });
    const params = { allocation_id: allocation.id };
    const seen = await as(bob)(getAllocation, { params });
    expect(seen).toMatchObject({ access: "view", access_until: grant.expires_at });
    expect(await sees(bob)).toEqual([allocation.id]);
    await as(bob)(getTask, { params: { task_id: allocation.task_id ?? "" } });
    const refused = await Promise.all(
      [
        mint(as(bob)),
        as(bob)(releaseAllocation, { params }),
        as(bob)(listAllocationGrants, { params }),
        as(bob)(createAllocationGrant, { params, body: { user_id: idOf(bob), level: "use" } }),
      ].map(refusal),
    );
    expect(refused.map(({ status, code }) => `${status} ${code}`)).toEqual(Array(4).fill("403 forbidden"));
  });

  it("SEC-01 to use opens terminals of one's own, and shows no one else's", async () => {
    await share(bob, "use");
    const theirs = await openTerminal(as(ada));
    const own = await openTerminal(as(bob));
    expect((await as(bob)(listTerminals, {})).items.map(({ id }) => id)).toEqual([own]);
    const close = (terminal_id: string) => as(bob)(closeTerminal, { params: { terminal_id } });
    expect(await refusal(close(theirs))).toMatchObject({ status: 404 });
    await close(own);
    const release = as(bob)(releaseAllocation, { params: { allocation_id: allocation.id } });
    expect(await refusal(release)).toMatchObject({ status: 403 });
    const [used] = await auditOf({ action: "terminal.create_token", target: own });
    expect(used).toMatchObject({
      actor_name: "bob@kelp.example",
      details: { allocation_id: allocation.id, granted_by_owner: "ada@kelp.example" },
    });
    const granted = await auditOf({ action: "allocation.grant", target: allocation.id });
    expect(granted[0]).toMatchObject({
      actor_name: "ada@kelp.example",
      details: { grantee: "bob@kelp.example", level: "use" },
    });
  });

  it.for([
    {
      end: "when it is revoked",
      change: () =>
        as(ada)(revokeAllocationGrant, { params: { allocation_id: allocation.id, user_id: idOf(bob) } }),
    },
    { end: "when it is lowered to view", change: () => share(bob, "view") },
    {
      end: "when it expires",
      change: () => superuser`
        UPDATE allocation_grants SET granted_at = now() - interval '2 hours', expires_at = now()
        WHERE allocation_id = ${allocation.id}`,
    },
    {
      end: "when the allocation is transferred",
      change: () =>
        as(admin)(transferAllocation, {
          params: { allocation_id: allocation.id },
          body: { owner_id: idOf(admin) },
        }),
    },
  ])("TERM-01 closes the grantee's open terminals $end, and no others", async ({ change, end }) => {
    await share(bob, "use");
    const news = await gateway.follow();
    const session = await openTerminal(as(bob));
    const administrators = await openTerminal(as(admin));
    await change();
    expect(await closeRequest(news, session), end).toMatchObject({ code: "terminal_access_ended" });
    news.stop();
    expect([403, 404]).toContain((await refusal(mint(as(bob)))).status);
    const stays = await as(admin)(createTerminalToken, {
      params: { allocation_id: allocation.id },
      body: { session_id: administrators },
    });
    expect(stays.session_id).toBe(administrators);
  });

  it("SEC-01 refuses a token that was minted before the grant ended", async () => {
    await share(bob, "use");
    const { token } = await mint(as(bob));
    await as(ada)(revokeAllocationGrant, { params: { allocation_id: allocation.id, user_id: idOf(bob) } });
    expect((await gateway.ask(claimTerminalToken, { body: { token } })).status).toBe(401);
  });

  it("SEC-01 can be listed and revoked once; replaced by the next to the same member", async () => {
    await share(bob, "view");
    await share(bob, "use");
    const params = { allocation_id: allocation.id };
    const { items } = await as(ada)(listAllocationGrants, { params });
    expect(items.map(({ email, level }) => `${email} ${level}`)).toEqual(["bob@kelp.example use"]);
    const revoke = () => as(ada)(revokeAllocationGrant, { params: { ...params, user_id: idOf(bob) } });
    await revoke();
    expect(await refusal(revoke())).toMatchObject({ status: 404 });
    expect(await sees(bob)).toEqual([]);
    expect((await auditOf({ action: "allocation.revoke_grant" }))[0]?.result).toBe("failed");
  });

  it("SEC-01 is refused to strangers, to whoever has full access already, and beyond 90 days", async () => {
    const params = { allocation_id: allocation.id };
    const grant = (user_id: string, expires_in_seconds?: number) =>
      as(ada)(createAllocationGrant, { params, body: { user_id, expires_in_seconds } });
    expect(await refusal(grant(uuidv7()))).toMatchObject({ status: 404 });
    expect(await refusal(grant(idOf(ada)))).toMatchObject({ status: 409, code: "conflict" });
    expect(await refusal(grant(idOf(admin)))).toMatchObject({ status: 409, code: "conflict" });
    expect(await refusal(grant(idOf(bob), 91 * 86_400))).toMatchObject({ status: 400 });
    await grant(idOf(bob), 90 * 86_400);
  });

  it("AUDIT-01 leaves an event when it expires, and nothing that could be used again", async () => {
    await share(bob, "view");
    const log = createLog({ process: "test", level: "silent" });
    await expireGrants(system, log);
    expect(await sees(bob), "not before its time").toEqual([allocation.id]);
    await superuser`UPDATE allocation_grants SET granted_at = now() - interval '2 hours', expires_at = now()`;
    expect(await sees(bob)).toEqual([]);
    expect(await expireGrants(system, log)).toBe(1);
    const [event] = await auditOf({ action: "allocation.expire_grant", target: allocation.id });
    expect(event).toMatchObject({
      actor_type: "system",
      details: { grantee: "bob@kelp.example", level: "view" },
    });
    expect(await superuser`SELECT FROM allocation_grants`).toHaveLength(0);
  });

  it("SEC-01 ends with the member, and is not back when they are", async () => {
    const eve = await addMember(api, kelp, `eve${uuidv7().slice(-6)}@kelp.example`, "member");
    await share(eve, "use");
    await as(admin)(removeMember, { params: { user_id: idOf(eve) } });
    expect((await as(ada)(listAllocationGrants, { params: { allocation_id: allocation.id } })).items).toEqual([]);
  });
});

describe("a role that changes", () => {
  it("TERM-01 closes the terminals that a former administrator had in others' allocations, and not their own", async () => {
    const carl = await addMember(api, kelp, `carl${uuidv7().slice(-6)}@kelp.example`, "admin");
    const news = await gateway.follow();
    const session = await openTerminal(as(carl));
    const own = await create(carl);
    const { session_id: kept } = await mint(as(carl), own.id);
    await as(admin)(updateMember, { params: { user_id: idOf(carl) }, body: { role: "member" } });
    expect(await closeRequest(news, session)).toMatchObject({ code: "terminal_access_ended" });
    news.stop();
    expect(await sees(carl)).toEqual([own.id]);
    expect((await as(carl)(listTerminals, {})).items).toMatchObject([{ id: kept, state: "opening" }]);
  });
});

describe("an owner", () => {
  it("SEC-01 can be named by an administrator, and by nobody else", async () => {
    const made = await create(admin, { owner_id: idOf(bob) });
    expect(made.owner).toMatchObject({ id: idOf(bob), name: "bob@kelp.example" });
    expect(await sees(bob)).toEqual([made.id]);
    expect(await refusal(create(bob, { owner_id: idOf(ada) }))).toMatchObject({ status: 403 });
    expect(await refusal(create(admin, { owner_id: uuidv7() }))).toMatchObject({ status: 404 });
  });

  it("SEC-01 can be changed by an administrator: the former one has no access left", async () => {
    const news = await gateway.follow();
    const session = await openTerminal(as(ada));
    const params = { allocation_id: allocation.id };
    const body = { owner_id: idOf(bob) };
    expect(await refusal(as(ada)(transferAllocation, { params, body }))).toMatchObject({ status: 403 });
    const transferred = await as(admin)(transferAllocation, { params, body });
    expect(transferred).toMatchObject({ owner: { id: idOf(bob) }, revision: allocation.revision + 1 });
    expect(await closeRequest(news, session)).toMatchObject({ code: "terminal_access_ended" });
    news.stop();
    expect(await refusal(as(ada)(getAllocation, { params }))).toMatchObject({ status: 404 });
    await mint(as(bob));
    const [event] = await auditOf({ action: "allocation.transfer" });
    expect(event).toMatchObject({ details: { from: "ada@kelp.example", to: "bob@kelp.example" } });
  });

  it("SEC-01 an owner who left is listed as inactive for administrators; they transfer or release the allocation", async () => {
    const eve = await addMember(api, kelp, `eve${uuidv7().slice(-6)}@kelp.example`, "member");
    const left = await create(eve);
    const without = async () =>
      (await as(admin)(listAllocations, { query: { owner: "none", status: "active" } })).items.map(({ id }) => id);
    expect(await without()).toEqual([]);
    await as(admin)(removeMember, { params: { user_id: idOf(eve) } });
    expect(await without()).toEqual([left.id]);
    const params = { allocation_id: left.id };
    expect((await as(admin)(getAllocation, { params })).owner).toMatchObject({ id: idOf(eve), active: false });
    await as(admin)(transferAllocation, { params, body: { owner_id: idOf(bob) } });
    expect(await without()).toEqual([]);
    expect(await sees(bob)).toEqual([left.id]);
  });
});
