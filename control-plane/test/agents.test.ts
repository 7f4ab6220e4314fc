// Agents that run steps: paired, listed and revoked over HTTP; their connections as gateways report them.

import { codeOf } from "@holdfast/contracts/client";
import { createAgentPairingToken, listAgents, pairAgent, revokeAgent } from "@holdfast/contracts/endpoints/agents";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { removeMember } from "@holdfast/contracts/endpoints/members";
import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import {
  admitAgent,
  closeAgentSession,
  type ExecutionOffer,
  openAgentSession,
  type RequestVerdict,
  reportExecutionEvents,
  requestExecutions,
  takeAgentWork,
  touchAgentSessions,
} from "@holdfast/contracts/internal/executions";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  addMember,
  createOrg,
  startTestApi,
  type TestApi,
  type TestOrg,
  tokenFor,
} from "../../testkit/api/api.ts";
import { dispatchBody } from "../../testkit/api/executions.ts";
import { enrollGateway, SERVICE_TOKEN, type TestGateway } from "../../testkit/api/services.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";

let api: TestApi;
let org: TestOrg;
let gateway: TestGateway;
let superuser: Sql;
const EXECUTION_URL = "ws://127.0.0.1:3002/ws";

beforeAll(async () => {
  api = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN } });
  ({ superuser } = openRoles(api.database));
  gateway = await enrollGateway(api);
});

beforeEach(async () => {
  org = await createOrg(api, `org-${uuidv7().slice(-12)}`);
  await superuser`DELETE FROM rate_limits`;
  await gateway.announce({ execution_url: EXECUTION_URL });
});

const capabilities = { kinds: ["agent.execute"], tags: ["east", "group:alpha"] };
const createPairing = (of = org) => api.operator(of.id)(createAgentPairingToken, { params: { org_id: of.id } });

/** As an existing agent sends it: no organization header, whatever fields it knows. */
async function pairWith(pairingToken: string, changes: Record<string, unknown> = {}) {
  const response = await fetch(`${api.url}/v1/agents/pair`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ pairingToken, name: "edge-1", agentVersion: "0.3.0", capabilities, ...changes }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, string> };
}

async function paired(of = org): Promise<{ agentId: string; agentToken: string }> {
  const { status, body } = await pairWith((await createPairing(of)).token);
  expect(status).toBe(201);
  return body as { agentId: string; agentToken: string };
}

const agents = async (of = org) => (await api.operator(of.id)(listAgents, { params: { org_id: of.id } })).agents;

type OpenOptions = { by?: TestGateway; protocolVersion?: number; holding?: unknown[]; session?: object };

async function open(
  agentId: string,
  { by = gateway, protocolVersion = 1, holding = [], session = {} }: OpenOptions = {},
) {
  const sessionId = uuidv7();
  const answer = await by.ask(openAgentSession, {
    body: {
      ...{ agent_id: agentId, session_id: sessionId, agent_version: "0.4.0", capabilities },
      ...{ protocol_version: protocolVersion, holding, key_set_version: null },
      ...{ journal_id: null, draining: false, again: false, ...session },
    },
  });
  return { sessionId, ...answer };
}

async function dispatch(changes: Record<string, unknown> = {}, by = gateway): Promise<RequestVerdict> {
  const body = { ...dispatchBody(org.id), ...changes };
  const { body: answer } = await by.ask(requestExecutions, {
    body: { requests: [{ body, correlation_id: uuidv7() }] },
  });
  return (answer["verdicts"] as RequestVerdict[])[0] as RequestVerdict;
}

describe("a pairing token", () => {
  it("EXEC-08 names its organization, works once for 15 minutes, and is exchanged for an agent token", async () => {
    const { token, expiresAt } = await createPairing();
    expect(token).toMatch(new RegExp(`^${org.id}\\.hfx_[A-Za-z0-9_-]{43}$`));
    expect(Math.round((Date.parse(expiresAt) - Date.now()) / 60_000)).toBe(15);
    const { status, body } = await pairWith(token);
    expect(status).toBe(201);
    expect(body).toMatchObject({ organizationId: org.id, gatewayWsUrl: EXECUTION_URL });
    expect(body["agentToken"]).toMatch(new RegExp(`^${org.id}\\.hfx_`));
    expect(body["agentId"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(body["keySet"]).toMatchObject({ kind: "task_key_set" });
    expect(await pairWith(token)).toMatchObject({ status: 401, body: { code: "PAIRING_TOKEN_INVALID" } });
  });

  it("EXEC-08 is refused in capitals when it is malformed, unknown, of another organization, or expired", async () => {
    const { token } = await createPairing();
    const other = await createOrg(api, "other");
    const [, secret] = token.split(".");
    for (const wrong of ["", "x", "a.b", `${org.id}.hfx_${"x".repeat(43)}`, `${other.id}.${secret}`, `${token}.x`])
      expect(await pairWith(wrong)).toMatchObject({ status: 401, body: { code: "PAIRING_TOKEN_INVALID" } });
    await superuser`UPDATE execution_pairing_tokens SET expires_at = now() WHERE org_id = ${org.id}`;
    expect(await pairWith(token)).toMatchObject({ status: 400, body: { code: "PAIRING_TOKEN_EXPIRED" } });
  });

  it("EXEC-08 pairs one of many agents that use it at the same moment", async () => {
    const { token } = await createPairing();
    const answers = await Promise.all(Array.from({ length: 8 }, () => pairWith(token)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(await agents()).toHaveLength(1);
  });

  it("EXEC-08 is not used while no gateway could be named", async () => {
    const { token } = await createPairing();
    await superuser`DELETE FROM gateways`;
    expect(await pairWith(token)).toMatchObject({ status: 503, body: { code: "AGENT_GATEWAY_MISSING" } });
    await gateway.announce({ execution_url: EXECUTION_URL });
    expect((await pairWith(token)).status).toBe(201);
  });

  it("EXEC-08 is created by owners and admins only", async () => {
    const member = api.as(await tokenFor(api, org, "member"));
    const refused = await member(createAgentPairingToken, { params: { org_id: org.id } }).catch(codeOf);
    expect(refused).toBe("forbidden");
    const admin = api.as(await tokenFor(api, org, "admin"));
    expect((await admin(createAgentPairingToken, { params: { org_id: org.id } })).token).toContain(org.id);
  });

  it("EXEC-08 answers a refusal in capitals also before the endpoint is reached", async () => {
    const response = await fetch(`${api.url}/v1/orgs/${org.id}/agents/pairing-tokens`, { method: "POST" });
    expect(await response.json()).toMatchObject({ code: "UNAUTHENTICATED" });
    const broken = await fetch(`${api.url}/v1/agents/pair`, {
      ...{ method: "POST", headers: { "content-type": "application/json" }, body: "{" },
    });
    expect(await broken.json()).toMatchObject({ code: "MALFORMED_JSON" });
  });

  it("ID-15 ends with the person who created it", async () => {
    const admin = await addMember(api, org, "admin@example.com", "admin");
    const { token } = await admin.client(org.id)(createAgentPairingToken, { params: { org_id: org.id } });
    const { ended } = await api.operator(org.id)(removeMember, {
      params: { user_id: admin.me.id ?? "" },
    });
    expect(ended).toEqual([expect.objectContaining({ kind: "agent_pairing_token" })]);
    expect(await pairWith(token)).toMatchObject({ status: 401, body: { code: "PAIRING_TOKEN_INVALID" } });
  });

  it("ID-15 is worth nothing when its creator may no longer pair, whatever became of the row", async () => {
    const admin = await addMember(api, org, "later@example.com", "admin");
    const { token } = await admin.client(org.id)(createAgentPairingToken, { params: { org_id: org.id } });
    await superuser`UPDATE memberships SET role = 'member' WHERE user_id = ${admin.me.id ?? ""}`;
    expect(await pairWith(token)).toMatchObject({ status: 401, body: { code: "PAIRING_TOKEN_INVALID" } });
  });

  it("EXEC-08 is rate-limited when it is guessed", async () => {
    const guesses = await Promise.all(Array.from({ length: 70 }, () => pairWith(`${org.id}.hfx_guess`)));
    expect(guesses.map(({ status }) => status)).toContain(429);
    expect(guesses.find(({ status }) => status === 429)?.body).toMatchObject({ code: "RATE_LIMIT_EXCEEDED" });
  });

  it("SEC-03 leaves neither token in the log, the audit or the database in clear text", async () => {
    const { token } = await createPairing();
    const { body } = await pairWith(token);
    const stored = await superuser`SELECT * FROM execution_agents WHERE org_id = ${org.id}`;
    const { items } = await api.operator(org.id)(listAudit, {});
    const everything = api.logged() + JSON.stringify([stored, items]);
    for (const secret of [token, body["agentToken"]]) expect(everything).not.toContain(secret?.split(".")[1]);
    expect(items.map(({ action }) => action)).toEqual([
      "agent.pair",
      "agent.pairing_token_create",
      "organization.create",
    ]);
  });
});

describe("the list of agents", () => {
  it("EXEC-07 shows an agent as online by the last sign of life, and what it can do", async () => {
    const { agentId } = await paired();
    expect(await agents()).toMatchObject([
      { id: agentId, status: "offline", lastSeenAt: null, protocolVersion: null },
    ]);
    await open(agentId);
    expect(await agents()).toMatchObject([
      {
        ...{
          id: agentId,
          name: "edge-1",
          status: "online",
          agentVersion: "0.4.0",
          protocolVersion: 1,
          inFlight: 0,
        },
        ...{ kinds: ["agent.execute"], connectors: null, tags: ["east", "group:alpha"], maxInFlight: 10 },
      },
    ]);
    await superuser`UPDATE execution_agents SET last_seen_at = now() - interval '61 seconds' WHERE id = ${agentId}`;
    expect((await agents())[0]?.status).toBe("offline");
  });
});

describe("a connection", () => {
  it("EXEC-01 is admitted by the agent token alone, and never after it was revoked", async () => {
    const { agentId, agentToken } = await paired();
    const admit = (token: string) => gateway.ask(admitAgent, { body: { token } });
    expect(await admit(agentToken)).toMatchObject({ status: 200, body: { agent_id: agentId, org_id: org.id } });
    const other = await createOrg(api, `x-${uuidv7().slice(-12)}`);
    const [, secret] = agentToken.split(".");
    for (const wrong of ["x", `${other.id}.${secret}`, `${agentToken}x`])
      expect(await admit(wrong)).toMatchObject({ status: 401, body: { code: "agent_token_refused" } });
    await api.operator(org.id)(revokeAgent, { params: { org_id: org.id, agent_id: agentId } });
    expect(await admit(agentToken)).toMatchObject({ status: 401, body: { code: "agent_token_refused" } });
    expect((await open(agentId)).status).toBe(401);
  });

  it("EXEC-07 of a revoked agent is closed at once, and found again when its gateway missed the news", async () => {
    const { agentId } = await paired();
    const { sessionId } = await open(agentId);
    const news = await gateway.follow();
    const line = news.next((line: ServiceNews) => line.type === "agent_revoked" && line.agent_id === agentId);
    expect(await api.operator(org.id)(revokeAgent, { params: { org_id: org.id, agent_id: agentId } })).toEqual({
      ok: true,
    });
    await line;
    const late = await gateway.follow();
    await late.next((line: ServiceNews) => line.type === "agent_revoked" && line.agent_id === agentId);
    const sessions = [{ agent_id: agentId, session_id: sessionId, draining: false, journal_id: null }];
    const { body } = await gateway.ask(touchAgentSessions, { body: { sessions } });
    expect(body).toEqual({ revoked: [sessionId] });
    expect(await agents()).toMatchObject([{ status: "revoked", inFlight: 0 }]);
    news.stop();
    late.stop();
  });

  it("EXEC-08 of an unknown or foreign agent is refused to be revoked with AGENT_NOT_FOUND", async () => {
    const foreign = await paired(await createOrg(api, `f-${uuidv7().slice(-12)}`));
    for (const agentId of [uuidv7(), foreign.agentId]) {
      const response = await fetch(`${api.url}/v1/orgs/${org.id}/agents/${agentId}/revoke`, {
        method: "POST",
        headers: { authorization: `Bearer ${api.operatorToken}`, "x-org-id": org.id },
      });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ code: "AGENT_NOT_FOUND" });
    }
  });

  it("EXEC-06 the newest gets new work, also at another gateway, which is notified", async () => {
    const { agentId } = await paired();
    const first = await open(agentId);
    expect(await dispatch()).toMatchObject({ state: "assigned", offer: { session_id: first.sessionId } });
    const other = await enrollGateway(api);
    const news = await other.follow();
    const second = await open(agentId, { by: other });
    const verdict = await dispatch();
    expect(verdict).toMatchObject({ state: "assigned", agent_id: agentId, offer: null });
    const line = await news.next((line: ServiceNews) => line.type === "agent_work" && line.agent_id === agentId);
    expect(line).toMatchObject({ session_id: second.sessionId });
    const body = { agent_id: agentId, session_id: second.sessionId };
    const taken = await other.ask(takeAgentWork, { body });
    expect(taken.body["offers"]).toMatchObject([{ request_id: verdict.request_id, session_id: second.sessionId }]);
    expect((await other.ask(takeAgentWork, { body })).body["offers"]).toEqual([]);
    expect((await gateway.ask(takeAgentWork, { body })).body["offers"]).toEqual([]);
    news.stop();
  });

  it("EXEC-01 that was closed gets nothing, and a touch that was on its way does not open it again", async () => {
    const { agentId } = await paired();
    const { sessionId } = await open(agentId);
    await gateway.ask(closeAgentSession, { body: { agent_id: agentId, session_id: sessionId, reason: "closed" } });
    const sessions = [{ agent_id: agentId, session_id: sessionId, draining: false, journal_id: null }];
    await gateway.ask(touchAgentSessions, { body: { sessions } });
    expect(await dispatch()).toMatchObject({
      state: "no_agent",
      not_chosen: [{ agent_id: agentId, reason: "offline", name: "edge-1" }],
    });
  });

  it("EXEC-06 an older one becomes the newest again when the newest is closed", async () => {
    const { agentId } = await paired();
    const first = await open(agentId);
    const second = await open(agentId);
    await gateway.ask(closeAgentSession, {
      body: { agent_id: agentId, session_id: second.sessionId, reason: "" },
    });
    const sessions = [{ agent_id: agentId, session_id: first.sessionId, draining: false, journal_id: null }];
    await gateway.ask(touchAgentSessions, { body: { sessions } });
    expect(await dispatch()).toMatchObject({ state: "assigned", offer: { session_id: first.sessionId } });
  });

  it("EXEC-01 that drains gets no new work until it no longer does", async () => {
    const { agentId } = await paired();
    const { sessionId } = await open(agentId);
    const touch = (draining: boolean) =>
      gateway.ask(touchAgentSessions, {
        body: { sessions: [{ agent_id: agentId, session_id: sessionId, draining, journal_id: null }] },
      });
    await touch(true);
    expect(await dispatch()).toMatchObject({ state: "no_agent", not_chosen: [{ reason: "draining" }] });
    await touch(false);
    expect(await dispatch()).toMatchObject({ state: "assigned" });
  });

  it("EXEC-04 is offered what an agent of ours lost, and not what it holds", async () => {
    const { agentId } = await paired();
    await open(agentId);
    const [held, lost] = [await dispatch(), await dispatch()];
    const again = await open(agentId, { holding: [{ requestId: held.request_id, generation: 1 }] });
    expect(again.body).toMatchObject({ lease_ms: 60_000, stop: [] });
    expect((again.body["offers"] as ExecutionOffer[]).map((offer) => offer.request_id)).toEqual([lost.request_id]);
  });

  it("EXEC-02 never offers an agent of another system again what was sent to it", async () => {
    const { agentId } = await paired();
    await open(agentId, { protocolVersion: 0 });
    expect(await dispatch()).toMatchObject({ state: "assigned", offer: { signature: null } });
    for (const protocolVersion of [0, 1]) {
      const again = await open(agentId, { protocolVersion });
      expect(again.body["offers"]).toEqual([]);
    }
  });

  it("EXEC-04 tells an agent to stop what it holds and is not its own, or is over", async () => {
    const { agentId } = await paired();
    await open(agentId);
    const ended = await dispatch();
    await superuser`UPDATE executions SET deadline_at = now() WHERE request_id = ${ended.request_id}`;
    await expect
      .poll(async () => (await superuser`SELECT status FROM executions WHERE request_id = ${ended.request_id}`)[0])
      .toEqual({ status: "failed" });
    const holding = [
      { requestId: ended.request_id, generation: 1 },
      { requestId: "unknown:step:1", generation: 1 },
    ];
    const { body } = await open(agentId, { holding });
    expect(body["stop"]).toEqual([
      { request_id: ended.request_id, generation: 1, reason: "ended" },
      { request_id: "unknown:step:1", generation: 1, reason: "unknown" },
    ]);
  });
});

describe("revoking an agent", () => {
  it("EXEC-07 ends what it has, and frees what was never sent to it", async () => {
    const { agentId } = await paired();
    const { sessionId } = await open(agentId);
    const sent = await dispatch();
    const other = await enrollGateway(api);
    const unsent = await dispatch({ waitMs: 60_000 }, other);
    expect(unsent).toMatchObject({ state: "assigned", offer: null });
    await api.operator(org.id)(revokeAgent, { params: { org_id: org.id, agent_id: agentId } });
    const rows =
      await superuser`SELECT request_id, status, error FROM executions WHERE org_id = ${org.id} ORDER BY id`;
    expect(rows).toMatchObject([
      { request_id: sent.request_id, status: "failed", error: "AGENT_DISCONNECTED" },
      { request_id: unsent.request_id, status: "pending", error: null },
    ]);
    const result = { status: "succeeded" };
    const event = { request_id: sent.request_id, agent_id: agentId, session_id: sessionId, generation: 1, result };
    const { body } = await gateway.ask(reportExecutionEvents, {
      body: { events: [{ type: "result", ...event }] },
    });
    expect(body).toEqual({ verdicts: [{ verdict: "unknown", stop: null }] });
    const second = await paired();
    await open(second.agentId);
    await expect
      .poll(
        async () => (await superuser`SELECT agent_id FROM executions WHERE request_id = ${unsent.request_id}`)[0],
      )
      .toEqual({ agent_id: second.agentId });
  });
});

describe("an agent's capabilities", () => {
  it("EXEC-01 may name kinds that are not known here", async () => {
    const { token } = await createPairing();
    const unusual = { capabilities: { kinds: ["agent.execute", "quantum.leap"], later: true }, later: 1 };
    expect((await pairWith(token, unusual)).status).toBe(201);
    expect((await agents())[0]?.kinds).toEqual(["agent.execute", "quantum.leap"]);
  });

  it("EXEC-08 need a name of 1 to 120 characters", async () => {
    const { token } = await createPairing();
    for (const name of ["", " ", "x".repeat(121)])
      expect(await pairWith(token, { name })).toMatchObject({ status: 400, body: { code: "INVALID_REQUEST" } });
    expect((await pairWith(token)).status).toBe(201);
    const refused = await api
      .operator()(pairAgent, {
        body: { pairingToken: token, name: "x", agentVersion: "1", capabilities },
      })
      .catch(codeOf);
    expect(refused).toBe("pairing_token_invalid");
  });
});
