// Nodes that run steps with their own identity: off unless policy allows it, and only as long as the node is one of ours.

import { listAgents, revokeAgent } from "@holdfast/contracts/endpoints/agents";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { changePolicy } from "@holdfast/contracts/endpoints/policy";
import {
  admitAgent,
  openAgentSession,
  type RequestVerdict,
  requestExecutions,
  touchAgentSessions,
} from "@holdfast/contracts/internal/executions";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg } from "../../testkit/api/api.ts";
import { dispatchBody } from "../../testkit/api/executions.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { enrollGateway, SERVICE_TOKEN, type TestGateway } from "../../testkit/api/services.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";

let api: TestApi;
let gateway: TestGateway;
let superuser: Sql;
let org: TestOrg;
let node: TestNode;
const URL = "ws://127.0.0.1:3002/ws";
const capabilities = { kinds: ["agent.execute"] };

beforeAll(async () => {
  api = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN } });
  ({ superuser } = openRoles(api.database));
  gateway = await enrollGateway(api);
  await gateway.announce({ execution_url: URL });
});

beforeEach(async () => {
  org = await createOrg(api, `org-${uuidv7().slice(-12)}`);
  node = await enrollTestNode(api, org.id);
  expect((await sendHeartbeatFrom(node)).status).toBe(200);
});

const policy = (value: "on" | "off") =>
  api.operator()(changePolicy, { body: { key: "node.executions", value, reason: "a test" } });
const pair = (of = node) =>
  of.client.ask({ method: "POST", path: of.path("execution-agent"), body: { agentVersion: "1.0", capabilities } });
const admit = async (token: unknown) => (await gateway.ask(admitAgent, { body: { token } })).status;
const agents = async () => (await api.operator(org.id)(listAgents, { params: { org_id: org.id } })).agents;
/** Policies are read again after a moment. */
const allowed = async () => {
  await policy("on");
  await expect.poll(async () => (await pair()).status).toBe(200);
};

async function connect(agentId: unknown) {
  const session_id = uuidv7();
  const { status } = await gateway.ask(openAgentSession, {
    body: {
      ...{ agent_id: agentId, session_id, agent_version: "1.0", capabilities, protocol_version: 1, holding: [] },
      ...{ key_set_version: null, journal_id: null, draining: false, again: false },
    },
  });
  const touch = async () => {
    const { body } = await gateway.ask(touchAgentSessions, {
      body: { sessions: [{ agent_id: agentId, session_id, draining: false, journal_id: null }] },
    });
    return body["revoked"];
  };
  return { status, session_id, touch };
}

async function dispatch() {
  const requests = [{ body: dispatchBody(org.id), correlation_id: uuidv7() }];
  const { body } = await gateway.ask(requestExecutions, { body: { requests } });
  return (body["verdicts"] as RequestVerdict[])[0];
}

describe("a node that wants to run steps with its own identity", () => {
  it("EXEC-08 is refused unless policy allows it, and no agent is made", async () => {
    await policy("off");
    await expect.poll(async () => (await pair()).body).toMatchObject({ code: "node_executions_off" });
    expect((await pair()).status).toBe(403);
    expect(await agents()).toEqual([]);
  });

  it("EXEC-08 ID-15 is one agent of its organization, with a token that each call replaces", async () => {
    await allowed();
    const first = (await pair()).body;
    expect(first).toMatchObject({ organizationId: org.id, gatewayWsUrl: URL, keySet: { kind: "task_key_set" } });
    expect(await admit(first["agentToken"])).toBe(200);
    const second = (await pair()).body;
    expect(second["agentId"]).toBe(first["agentId"]);
    expect([await admit(first["agentToken"]), await admit(second["agentToken"])]).toEqual([401, 200]);
    expect(await agents()).toMatchObject([{ id: first["agentId"], name: node.name, nodeId: node.id }]);
    const audit = (await api.operator(org.id)(listAudit, { query: { action: "agent.pair" } })).items;
    expect(audit).toMatchObject([{ actor_type: "node", actor_name: node.name, target_id: first["agentId"] }]);
  });

  it("EXEC-08 cannot pair for another node", async () => {
    await allowed();
    const other = await enrollTestNode(api, org.id);
    const body = { agentVersion: "1.0", capabilities };
    const { status } = await node.client.ask({ method: "POST", path: other.path("execution-agent"), body });
    expect(status).toBe(403);
  });

  it.for([
    ["is quarantined", (id: string) => superuser`UPDATE nodes SET status = 'quarantined' WHERE id = ${id}`],
    [
      "is retired",
      (id: string) => superuser`UPDATE nodes SET status = 'retired', revoked_at = now() WHERE id = ${id}`,
    ],
    ["is no longer allowed to by policy", () => policy("off")],
  ] as const)("EXEC-07 is disconnected and refused when it %s", async ([, change]) => {
    await allowed();
    const { agentId, agentToken } = (await pair()).body;
    const { status, session_id, touch } = await connect(agentId);
    expect([status, await touch()]).toEqual([200, []]);
    await change(node.id);
    await expect.poll(touch).toEqual([session_id]);
    expect([await admit(agentToken), (await connect(agentId)).status]).toEqual([401, 401]);
    expect(await dispatch()).toMatchObject({ state: "no_agent" });
  });

  it("EXEC-03 gets no new steps while it drains, and keeps its connection", async () => {
    await allowed();
    const { agentId } = (await pair()).body;
    const { touch } = await connect(agentId);
    expect(await dispatch()).toMatchObject({ state: "assigned", agent_id: agentId });
    await superuser`UPDATE nodes SET status = 'draining' WHERE id = ${node.id}`;
    expect(await touch()).toEqual([]);
    await expect.poll(dispatch).toMatchObject({ state: "no_agent" });
  });

  it("EXEC-07 does not pair again after its agent was revoked", async () => {
    await allowed();
    const { agentId, agentToken } = (await pair()).body;
    await api.operator(org.id)(revokeAgent, { params: { org_id: org.id, agent_id: String(agentId) } });
    expect(await pair()).toMatchObject({ status: 403, body: { code: "node_agent_revoked" } });
    expect(await admit(agentToken)).toBe(401);
    expect(await agents()).toMatchObject([{ id: agentId, status: "revoked" }]);
  });
});
