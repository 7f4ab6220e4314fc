// Executions over HTTP, as people see them, and over the internal listener, as gateways do.

import { codeOf } from "@holdfast/contracts/client";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import {
  cancelExecution,
  getExecution,
  listExecutions,
  readExecutionOutput,
} from "@holdfast/contracts/endpoints/executions";
import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import {
  type ExecutionOffer,
  openAgentSession,
  type RequestVerdict,
  readExecutionResults,
  reportExecutionEvents,
  requestExecutions,
  takeAgentWork,
} from "@holdfast/contracts/internal/executions";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import { dispatchBody } from "../../testkit/api/executions.ts";
import { enrollGateway, SERVICE_TOKEN, type TestGateway } from "../../testkit/api/services.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { makeAgentSecret } from "../src/agents/tokens.ts";
import type { Sql } from "../src/database/connect.ts";

let api: TestApi;
let org: TestOrg;
let gateway: TestGateway;
let superuser: Sql;
let agent: { id: string; sessionId: string };

beforeAll(async () => {
  api = await startTestApi({ env: { HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN } });
  ({ superuser } = openRoles(api.database));
  gateway = await enrollGateway(api);
});

beforeEach(async () => {
  org = await createOrg(api, `org-${uuidv7().slice(-12)}`);
  agent = await newAgent();
});

async function newAgent(): Promise<typeof agent> {
  const id = uuidv7();
  await superuser`
    INSERT INTO execution_agents (id, org_id, name, token_hash, creator_name, agent_version, kinds, tags, max_in_flight)
    VALUES (${id}, ${org.id}, 'edge-1', ${makeAgentSecret(org.id).hash}, 'test', '1', '{agent.execute}', '{}', 10)`;
  return { id, sessionId: await connect(id) };
}

async function connect(agentId: string, by = gateway): Promise<string> {
  const sessionId = uuidv7();
  const { status } = await by.ask(openAgentSession, {
    body: {
      ...{ agent_id: agentId, session_id: sessionId, agent_version: "1", protocol_version: 1, holding: [] },
      ...{ capabilities: { kinds: ["agent.execute"] }, key_set_version: 0 },
      ...{ journal_id: null, draining: false, again: false },
    },
  });
  expect(status).toBe(200);
  return sessionId;
}

async function dispatch(changes: Record<string, unknown> = {}, by = gateway): Promise<RequestVerdict> {
  const body = { requests: [{ body: { ...dispatchBody(org.id), ...changes }, correlation_id: uuidv7() }] };
  const { body: answer } = await by.ask(requestExecutions, { body });
  return (answer["verdicts"] as RequestVerdict[])[0] as RequestVerdict;
}

const report = async (...events: Record<string, unknown>[]) => {
  const { body } = await gateway.ask(reportExecutionEvents, {
    body: {
      events: events.map((event) => ({
        agent_id: agent.id,
        session_id: agent.sessionId,
        generation: 1,
        ...event,
      })),
    },
  });
  return body["verdicts"];
};
const succeed = (request_id: string, output: unknown = { done: true }) =>
  report({ type: "result", request_id, result: { status: "succeeded", output } });

const client = () => api.operator(org.id);
const idOf = async (request_id: string) =>
  (await client()(listExecutions, { query: { request_id } })).items[0]?.id ?? "";

describe("the list of executions", () => {
  it("EXEC-02 shows requests, newest first, by status, agent and request id", async () => {
    const [one, two] = [await dispatch(), await dispatch()];
    await succeed(one.request_id);
    const { items } = await client()(listExecutions, {});
    expect(items.map(({ request_id }) => request_id)).toEqual([two.request_id, one.request_id]);
    expect(items[1]).toMatchObject({
      ...{
        status: "succeeded",
        agent_id: agent.id,
        agent_name: "edge-1",
        step_id: "step",
        attempt: 1,
        error: null,
      },
      ...{ selector: { tag: null, agent_id: null }, kind: "agent.execute", workflow_id: "workflow" },
    });
    const listed = async (query: Record<string, string>) =>
      (await client()(listExecutions, { query })).items.map(({ request_id }) => request_id);
    expect(await listed({ status: "dispatched" })).toEqual([two.request_id]);
    expect(await listed({ agent_id: agent.id })).toHaveLength(2);
    expect(await listed({ agent_id: uuidv7() })).toEqual([]);
    const first = await client()(listExecutions, { query: { limit: 1 } });
    const next = await client()(listExecutions, { query: { limit: 1, cursor: first.next_cursor ?? "" } });
    expect(next.items.map(({ request_id }) => request_id)).toEqual([one.request_id]);
  });
});

describe("an execution", () => {
  it("EXEC-03 shows why it waits, for each agent", async () => {
    const { request_id } = await dispatch({ selectorTag: "east", waitMs: 60_000 });
    const shown = await client()(getExecution, { params: { execution_id: await idOf(request_id) } });
    expect(shown).toMatchObject({
      ...{ status: "pending", selector: { tag: "east", agent_id: null }, output: null, late_results: [] },
      not_chosen: [{ agent_id: agent.id, name: "edge-1", reason: "tag_missing" }],
    });
  });

  it("EXEC-04 shows its result, what was printed, and results that came late", async () => {
    const { request_id } = await dispatch();
    const id = await idOf(request_id);
    await report(
      { type: "accepted", request_id },
      { type: "log", request_id, seq: 1, stream: "stdout", text: "hello" },
    );
    const output = () => client()(readExecutionOutput, { params: { execution_id: id }, query: { after: 0 } });
    expect(await output()).toMatchObject({ chunks: [{ seq: 1, stream: "stdout", text: "hello" }], ended: false });
    await report({ type: "log", request_id, seq: 2, stream: "stderr", text: "bye" });
    await succeed(request_id);
    const rest = await client()(readExecutionOutput, { params: { execution_id: id }, query: { after: 1 } });
    expect(rest).toMatchObject({ chunks: [{ seq: 2, text: "bye" }], ended: true });
    await report({ type: "result", request_id, generation: 2, result: { status: "failed", error: "late" } });
    expect(await client()(getExecution, { params: { execution_id: id } })).toMatchObject({
      ...{ status: "succeeded", output: { done: true }, not_chosen: [] },
      late_results: [{ status: "failed", error: "late" }],
    });
  });
});

describe("cancelling an execution", () => {
  const cancel = (id: string) => client()(cancelExecution, { params: { execution_id: id } });

  it("EXEC-02 without an agent ends it at once, and its caller is told", async () => {
    const news = await gateway.follow();
    const { request_id } = await dispatch({ selectorTag: "east", waitMs: 60_000 });
    expect(await cancel(await idOf(request_id))).toMatchObject({
      status: "cancelled",
      error: "EXECUTION_CANCELLED",
    });
    await news.next((line: ServiceNews) => line.type === "execution_ended" && line.request_id === request_id);
    const { body } = await gateway.ask(readExecutionResults, {
      body: { request_ids: [request_id, "unknown:step:1"] },
    });
    expect(body["ended"]).toEqual([
      { request_id, result: { status: "failed", error: "EXECUTION_CANCELLED" }, no_agent: null },
    ]);
    expect(await cancel(await idOf(request_id)).catch(codeOf)).toBe("execution_ended");
    news.stop();
  });

  it("EXEC-02 asks its agent to stop, and the result ends it as cancelled", async () => {
    const news = await gateway.follow();
    const { request_id } = await dispatch();
    const id = await idOf(request_id);
    const asked = await cancel(id);
    expect(asked).toMatchObject({ status: "dispatched", cancel_requested_at: expect.any(String) });
    const line = await news.next(
      (one: ServiceNews) => one.type === "stop_execution" && one.request_id === request_id,
    );
    expect(line).toMatchObject({
      agent_id: agent.id,
      session_id: agent.sessionId,
      generation: 1,
      reason: "cancelled",
    });
    expect(await report({ type: "renewed", request_id })).toEqual([{ verdict: "late", stop: "cancelled" }]);
    await report({ type: "result", request_id, result: { status: "failed", error: "killed" } });
    expect(await client()(getExecution, { params: { execution_id: id } })).toMatchObject({ status: "cancelled" });
    const { items } = await client()(listAudit, { query: { action: "execution.cancel" } });
    expect(items).toMatchObject([{ target_id: id, result: "allowed" }]);
    news.stop();
  });

  it("EXEC-02 that was not sent yet ends it at once, and frees its agent", async () => {
    const other = await enrollGateway(api);
    const { request_id } = await dispatch({}, other);
    expect(await cancel(await idOf(request_id))).toMatchObject({ status: "cancelled" });
    const [row] = await superuser`SELECT in_flight FROM execution_agents WHERE id = ${agent.id}`;
    expect(row).toEqual({ in_flight: 0 });
    const work = { agent_id: agent.id, session_id: agent.sessionId };
    expect((await gateway.ask(takeAgentWork, { body: work })).body).toEqual({ offers: [] });
  });

  it("EXEC-02 needs an owner or admin", async () => {
    const { request_id } = await dispatch();
    const member = api.as(await tokenFor(api, org, "member"));
    const id = await idOf(request_id);
    expect(await member(cancelExecution, { params: { execution_id: id } }).catch(codeOf)).toBe("forbidden");
    expect(await member(getExecution, { params: { execution_id: id } })).toMatchObject({ id });
  });
});

describe("a gateway", () => {
  it("EXEC-06 finds work of its agents that it was not told of", async () => {
    const other = await enrollGateway(api);
    const { request_id } = await dispatch({}, other);
    const news = await gateway.follow();
    await news.next((line: ServiceNews) => line.type === "agent_work" && line.agent_id === agent.id);
    const work = { agent_id: agent.id, session_id: agent.sessionId };
    const { body } = await gateway.ask(takeAgentWork, { body: work });
    expect((body["offers"] as ExecutionOffer[]).map((offer) => offer.request_id)).toEqual([request_id]);
    news.stop();
  });

  it("SEC-04 cannot speak for another one", async () => {
    const { status, body } = await gateway.ask(requestExecutions, {
      body: { gateway_id: uuidv7(), requests: [{ body: dispatchBody(org.id), correlation_id: uuidv7() }] },
    });
    expect({ status, code: body["code"] }).toEqual({ status: 401, code: "service_identity_refused" });
  });

  it("EXEC-02 may send a payload of a megabyte", async () => {
    const payload = { ...dispatchBody(org.id).payload, padding: "x".repeat(1_000_000) };
    expect(await dispatch({ payload })).toMatchObject({ state: "assigned", offer: { payload } });
  });

  it("EXEC-02 gets the keys that an agent of ours lacks", async () => {
    const { body } = await gateway.ask(openAgentSession, {
      body: {
        ...{ agent_id: agent.id, session_id: uuidv7(), agent_version: "1", protocol_version: 1, holding: [] },
        ...{ capabilities: { kinds: ["agent.execute"] }, key_set_version: 1 },
        ...{ journal_id: null, draining: false, again: false },
      },
    });
    expect((body["key_sets"] as unknown[]).length).toBeGreaterThan(0);
  });
});

describe("metrics", () => {
  it("EXEC-02 count executions by state and by how they ended, and agents by state", async () => {
    const metrics = async () => (await fetch(`${api.url}/metrics`)).text();
    const numberIn = (text: string, line: string) =>
      Number(
        text
          .split("\n")
          .find((one) => one.startsWith(line))
          ?.split(" ")
          .at(-1) ?? 0,
      );
    const ended = 'holdfast_executions_ended_total{code="succeeded"';
    const before = numberIn(await metrics(), ended);
    const { request_id } = await dispatch();
    const during = await metrics();
    expect(numberIn(during, 'holdfast_executions{state="dispatched"')).toBeGreaterThan(0);
    expect(numberIn(during, 'holdfast_execution_agents{state="online"')).toBeGreaterThan(0);
    await succeed(request_id);
    expect(numberIn(await metrics(), ended)).toBe(before + 1);
    const failed = await dispatch();
    await report({
      type: "result",
      request_id: failed.request_id,
      result: { status: "failed", error: "any text of an agent" },
    });
    expect(await metrics()).not.toContain("any text");
  });
});
