// Requests to run steps on agents: dispatched, given to one agent, ended once; over the engine of one api or of two.

import { canonicalJson } from "@holdfast/kit/canonical-json";
import { keyringOf, verifyDetached } from "@holdfast/kit/detached-jws";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  declinedOf,
  type ExecutionLab,
  eventOf,
  type LabAgent,
  lapse,
  openExecutionLab,
  resultOf,
  shellPayload,
} from "../../testkit/api/executions.ts";
import { eraseResults } from "../src/executions/erase.ts";

let lab: ExecutionLab;
/** Every test has an organization of its own. */
let orgId: string;
const nobody = { publish: () => undefined };

beforeAll(async () => {
  lab = await openExecutionLab();
});
beforeEach(async () => {
  orgId = await lab.newOrg();
});

const newAgent = (options: Parameters<ExecutionLab["newAgent"]>[0] = {}) => lab.newAgent({ orgId, ...options });
const dispatch = (
  changes: Parameters<ExecutionLab["dispatch"]>[0] = {},
  options: Parameters<ExecutionLab["dispatch"]>[1] = {},
) => lab.dispatch({ organizationId: orgId, ...changes }, options);
const connectionOf = ({ id, sessionId, protocolVersion, journalId }: LabAgent) => ({
  agentId: id,
  sessionId,
  protocolVersion,
  journalId,
});
const take = (agent: LabAgent) => lab.replica.engine.takeWork(connectionOf(agent), { again: false, holding: [] });
const inFlightOf = async ({ id }: LabAgent) =>
  (await lab.superuser<{ in_flight: number }[]>`SELECT in_flight FROM execution_agents WHERE id = ${id}`)[0]
    ?.in_flight;

describe("a dispatch", () => {
  it("EXEC-02 is stored, audited and given to an agent by the time it is answered", async () => {
    const agent = await newAgent();
    const verdict = await dispatch({ secret: "s3cret", timeoutMs: 30_000 });
    expect(verdict).toMatchObject({
      ...{ state: "assigned", agent_id: agent.id, known: false },
      offer: { session_id: agent.sessionId, generation: 1, secret: "s3cret", timeout_ms: 30_000 },
    });
    const row = await lab.row(verdict.request_id);
    expect(row).toMatchObject({ status: "dispatched", agent_id: agent.id, session_id: agent.sessionId });
    const audited = await lab.superuser`
      SELECT actor_type, action, target_id, target_name, result FROM audit_events WHERE org_id = ${orgId}`;
    expect(audited).toEqual([
      {
        ...{ actor_type: "system", action: "execution.dispatch", result: "allowed" },
        ...{ target_id: row.id, target_name: verdict.request_id },
      },
    ]);
  });

  it("EXEC-02 of the same request starts nothing, and returns what became of it", async () => {
    const agent = await newAgent();
    const runId = uuidv7();
    const first = await dispatch({ runId });
    expect(await dispatch({ runId })).toMatchObject({
      state: "assigned",
      agent_id: agent.id,
      offer: null,
      known: true,
    });
    await lab.report(resultOf(agent, first.request_id, 1, { status: "succeeded", output: { done: true } }));
    const ended = { state: "ended", result: { status: "succeeded", output: { done: true } } };
    expect(await dispatch({ runId })).toMatchObject(ended);
    expect(await dispatch({ runId, attemptCount: 2 })).toMatchObject({ state: "assigned", known: false });
  });

  it("EXEC-02 by many callers at two replicas at the same moment is given to one agent once", async () => {
    const other = await lab.newReplica();
    await Promise.all([newAgent(), newAgent(), newAgent()]);
    const runId = uuidv7();
    const verdicts = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        dispatch({ runId }, { engine: index % 2 === 0 ? lab.replica.engine : other.engine }),
      ),
    );
    expect(verdicts.filter((one) => one.state === "assigned" && !one.known)).toHaveLength(1);
    expect(new Set(verdicts.map((one) => (one.state === "assigned" ? one.agent_id : ""))).size).toBe(1);
    expect(await lab.miscounted()).toEqual([]);
  });

  it("EXEC-02 is signed for an agent that verifies it, over what the agent gets", async () => {
    const agent = await newAgent();
    const verdict = await dispatch();
    if (verdict.state !== "assigned" || !verdict.offer) throw new Error("not assigned");
    const { offer } = verdict;
    const signed = {
      ...{ purpose: "execution", request_id: offer.request_id, agent_id: agent.id, organization_id: orgId },
      ...{ user_id: offer.user_id, kind: offer.kind, payload: offer.payload, timeout_ms: offer.timeout_ms },
      expires_at: offer.expires_at,
    };
    const keys = keyringOf(lab.replica.signer.verifiers().keys);
    expect(verifyDetached(keys, canonicalJson(signed), offer.signature ?? "")).toBe("valid");
    const changed = canonicalJson({ ...signed, agent_id: uuidv7() });
    expect(verifyDetached(keys, changed, offer.signature ?? "")).toBe("invalid");
    const [older] = [await newAgent({ protocolVersion: 0, tags: ["older"] })];
    expect(await dispatch({ selectorTag: "older" })).toMatchObject({
      agent_id: older.id,
      offer: { signature: null },
    });
  });

  it.each([
    ["a connector without its action", "connector.action", { connectorId: "github" }, "connectorId and actionId"],
    ["a step without its node", "agent.execute", { nodeId: "step" }, "payload.node"],
    [
      "a task that is no shell task",
      "agent.execute",
      { ...shellPayload, node: { ...shellPayload.node, config: { task: { type: "python" } } } },
      "payload.node.config.task.type",
    ],
  ] as const)("EXEC-02 of %s is refused", async (_, kind, payload, said) => {
    await newAgent();
    const verdict = await dispatch({ kind, payload });
    expect(verdict).toMatchObject({ state: "refused", message: expect.stringContaining(said) });
    await expect(lab.row(verdict.request_id)).rejects.toThrow("there is no request");
  });

  it("SEC-01 of an unknown organization is refused, and one with the id of a foreign request tells nothing of it", async () => {
    expect(await dispatch({ organizationId: uuidv7() })).toMatchObject({
      state: "refused",
      message: "The organization of the request is not known.",
    });
    await newAgent();
    const runId = uuidv7();
    const { request_id } = await dispatch({ runId });
    const before = await lab.row(request_id);
    const foreign = await lab.dispatch({ organizationId: await lab.newOrg(), runId });
    expect(foreign).toMatchObject({
      state: "refused",
      message: expect.stringContaining("Another request has this id"),
    });
    expect(JSON.stringify(foreign)).not.toContain(orgId);
    expect(await lab.row(request_id)).toEqual(before);
  });
});

describe("the choice of an agent", () => {
  it("SEC-01 never falls on an agent of another organization, by its id or its tag", async () => {
    const foreign = await lab.newAgent({ orgId: await lab.newOrg(), tags: ["east"] });
    for (const selector of [{ selectorAgentId: foreign.id }, { selectorTag: "east" }, {}]) {
      expect(await dispatch(selector)).toMatchObject({ state: "no_agent", not_chosen: [] });
    }
    expect(await inFlightOf(foreign)).toBe(0);
  });

  it("EXEC-03 goes by connector, tag, group and agent id", async () => {
    const github = await newAgent({ connectors: ["github"], tags: ["group:alpha"] });
    const jira = await newAgent({ connectors: ["jira"], tags: ["east"] });
    const action = (connectorId: string) => ({
      ...{ kind: "connector.action" as const, payload: { connectorId, actionId: "list" } },
    });
    expect(await dispatch(action("jira"))).toMatchObject({ agent_id: jira.id });
    expect(await dispatch(action("slack"))).toMatchObject({
      state: "no_agent",
      not_chosen: [{ reason: "connector_missing" }, { reason: "connector_missing" }],
    });
    expect(await dispatch({ selectorTag: "group:alpha" })).toMatchObject({ agent_id: github.id });
    expect(await dispatch({ selectorAgentId: jira.id })).toMatchObject({ agent_id: jira.id });
  });

  it("EXEC-03 never gives an agent more than it takes, with many dispatches at two replicas at once", async () => {
    const other = await lab.newReplica();
    const agents = await Promise.all([newAgent({ maxInFlight: 3 }), newAgent({ maxInFlight: 4 })]);
    const verdicts = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        dispatch({}, { engine: index % 2 === 0 ? lab.replica.engine : other.engine }),
      ),
    );
    expect(verdicts.filter(({ state }) => state === "assigned")).toHaveLength(7);
    expect(verdicts.filter(({ state }) => state === "no_agent")).toHaveLength(33);
    expect(await Promise.all(agents.map(inFlightOf))).toEqual([3, 4]);
    expect(await lab.miscounted()).toEqual([]);
  });

  it("EXEC-03 spreads requests over agents", async () => {
    const agents = await Promise.all([newAgent(), newAgent(), newAgent()]);
    for (let count = 0; count < 6; count += 1) await dispatch();
    expect(await Promise.all(agents.map(inFlightOf))).toEqual([2, 2, 2]);
  });

  it("EXEC-01 takes a session that its gateway no longer touches as closed", async () => {
    const agent = await newAgent();
    await lab.superuser`
      UPDATE execution_agents SET session_seen_at = now() - interval '71 seconds' WHERE id = ${agent.id}`;
    lab.replica.engine.agentChanged(agent);
    expect(await dispatch()).toMatchObject({ state: "no_agent", not_chosen: [{ reason: "offline" }] });
  });
});

describe("a request that waits", () => {
  it("EXEC-03 says why, and is given to the agent that connects", async () => {
    const agent = await newAgent({ connected: false });
    const verdict = await dispatch({ waitMs: 60_000, secret: "s3cret" });
    expect(verdict).toMatchObject({
      state: "pending",
      known: false,
      not_chosen: [{ agent_id: agent.id, reason: "offline" }],
    });
    await lab.connect(agent);
    await expect.poll(async () => (await lab.row(verdict.request_id)).status).toBe("dispatched");
    await expect
      .poll(() => lab.replica.news)
      .toContainEqual({
        ...{ type: "agent_work", agent_id: agent.id, session_id: agent.sessionId },
      });
    expect(await take(agent)).toMatchObject([{ request_id: verdict.request_id, secret: "s3cret", generation: 1 }]);
    expect(await take(agent)).toEqual([]);
  });

  it("EXEC-03 gets the room that a result leaves", async () => {
    const agent = await newAgent({ maxInFlight: 1 });
    const first = await dispatch();
    const second = await dispatch({ waitMs: 60_000 });
    expect(second).toMatchObject({ state: "pending", not_chosen: [{ reason: "full" }] });
    await lab.report(resultOf(agent, first.request_id, 1));
    await expect.poll(async () => (await lab.row(second.request_id)).agent_id).toBe(agent.id);
  });

  it("EXEC-03 is not overtaken by a later one that the same agent could run", async () => {
    const agent = await newAgent({ maxInFlight: 1 });
    const idle = await newAgent({ kinds: ["connector.action"] });
    const first = await dispatch();
    const waiting = await dispatch({ waitMs: 60_000 });
    await lab.superuser`UPDATE execution_agents SET max_in_flight = 10 WHERE id = ${agent.id}`;
    lab.replica.engine.agentChanged({ id: agent.id, orgId: await lab.newOrg() });
    const action = { kind: "connector.action" as const, payload: { connectorId: "github", actionId: "list" } };
    expect(await dispatch({ ...action, selectorAgentId: idle.id })).toMatchObject({
      agent_id: idle.id,
      offer: {},
    });
    expect(await dispatch()).toMatchObject({ state: "assigned", agent_id: agent.id, offer: null });
    const given = await lab.superuser<{ request_id: string }[]>`
      SELECT request_id FROM executions WHERE agent_id = ${agent.id} ORDER BY id`;
    expect(given.slice(0, 2).map(({ request_id }) => request_id)).toEqual([first.request_id, waiting.request_id]);
  });

  it("EXEC-05 ends as NO_AGENT_AVAILABLE when its time is over, and leaves that when it is dispatched again", async () => {
    const runId = uuidv7();
    const verdict = await dispatch({ runId, waitMs: 60_000 });
    await lapse(lab.superuser, verdict.request_id, "wait_until");
    await lab.replica.engine.sweep();
    expect(await lab.row(verdict.request_id)).toMatchObject({ status: "unplaced", error: "NO_AGENT_AVAILABLE" });
    expect(await lab.replica.engine.results([verdict.request_id])).toEqual([
      {
        ...{ request_id: verdict.request_id, no_agent: [] },
        result: { status: "failed", error: "NO_AGENT_AVAILABLE" },
      },
    ]);
    const agent = await newAgent();
    expect(await dispatch({ runId })).toMatchObject({ state: "assigned", agent_id: agent.id, known: false });
    expect(await take(agent)).toMatchObject([{ request_id: verdict.request_id, generation: 1 }]);
    await lab.report(resultOf(agent, verdict.request_id, 1));
    expect(await dispatch({ runId })).toMatchObject({ state: "ended", result: { status: "succeeded" } });
  });

  it("EXEC-02 dispatched again after its payload was erased runs with what was sent again", async () => {
    const runId = uuidv7();
    const { request_id } = await dispatch({ runId });
    await eraseResults(lab.system, nobody, { afterSeconds: 0 });
    expect(await lab.row(request_id)).toMatchObject({ status: "unplaced", payload: null });
    const agent = await newAgent();
    await dispatch({ runId });
    expect(await take(agent)).toMatchObject([{ payload: { nodeId: "step" } }]);
  });
});

describe("ids of requests", () => {
  it("EXEC-02 that are made of other parts are not the same request", async () => {
    await newAgent();
    const runId = uuidv7();
    const first = await dispatch({ runId, nodeId: "loop:step" });
    const second = await dispatch({ runId: `${runId}:loop`, nodeId: "step" });
    expect(second).toMatchObject({ state: "refused", request_id: first.request_id });
  });
});

describe("an agent that was replaced by one of another system, and back", () => {
  it("EXEC-02 is not sent what the other one was sent", async () => {
    const agent = await newAgent();
    const { request_id } = await dispatch({}, { asking: uuidv7() });
    await lab.connect(agent, { protocolVersion: 0 });
    expect(await take(agent)).toMatchObject([{ request_id, signature: null }]);
    await lab.connect(agent, { protocolVersion: 1 });
    expect(await lab.replica.engine.takeWork(connectionOf(agent), { again: true, holding: [] })).toEqual([]);
  });
});

describe("an agent that declines", () => {
  it("EXEC-03 frees the request for another one, and does not get it again", async () => {
    const [first, second] = [await newAgent({ tags: ["one"] }), await newAgent({ maxInFlight: 1 })];
    await dispatch({ selectorAgentId: second.id });
    const verdict = await dispatch({ waitMs: 60_000, secret: "s3cret" });
    expect(verdict).toMatchObject({ agent_id: first.id });
    expect(await lab.report(declinedOf(first, verdict.request_id))).toEqual({ verdict: "accepted", stop: null });
    const busy = await lab.superuser<{ request_id: string }[]>`
      SELECT request_id FROM executions WHERE agent_id = ${second.id} AND status = 'dispatched'`;
    await lab.report(resultOf(second, busy[0]?.request_id ?? "", 1));
    await expect.poll(async () => (await lab.row(verdict.request_id)).agent_id).toBe(second.id);
    expect(await take(second)).toMatchObject([{ generation: 2, secret: "s3cret" }]);
    expect(await lab.report(resultOf(first, verdict.request_id, 1))).toMatchObject({ verdict: "late" });
    expect(await lab.report(resultOf(second, verdict.request_id, 2))).toMatchObject({ verdict: "accepted" });
    expect(await lab.miscounted()).toEqual([]);
  });

  it("EXEC-02 and gets it again by a new connection runs it alone: what it said by the old one is too late", async () => {
    const agent = await newAgent();
    const { request_id } = await dispatch({ waitMs: 60_000 });
    const declined = declinedOf(agent, request_id);
    await lab.connect(agent);
    // The decline is still at its gateway.
    expect(await lab.replica.engine.takeWork(connectionOf(agent), { again: true, holding: [] })).toHaveLength(1);
    const other = await newAgent();
    expect(await lab.report(declined)).toEqual({ verdict: "late", stop: null });
    expect(await take(other)).toEqual([]);
    expect(await lab.report(eventOf("accepted", agent, request_id))).toMatchObject({ verdict: "accepted" });
    expect(await lab.report(declined)).toEqual({ verdict: "late", stop: null });
    expect(await lab.report(resultOf(agent, request_id, 1))).toMatchObject({ verdict: "accepted" });
    expect(await lab.row(request_id)).toMatchObject({ status: "succeeded", generation: 1 });
    expect(await lab.miscounted()).toEqual([]);
  });

  it("EXEC-05 leaves a request that does not wait without an agent, and its caller is told", async () => {
    const agent = await newAgent();
    const { request_id } = await dispatch();
    await lab.report(declinedOf(agent, request_id));
    await lab.replica.engine.sweep();
    const [ended] = await lab.replica.engine.results([request_id]);
    expect(ended).toMatchObject({ no_agent: [{ agent_id: agent.id, reason: "declined" }] });
    await expect.poll(() => lab.replica.news).toContainEqual({ type: "execution_ended", request_id });
  });
});

describe("many requests at once", () => {
  it("EXEC-02 are all run once, by agents of two gateways, with dispatches, results, refusals and sweeps side by side", async () => {
    const other = await lab.newReplica();
    const elsewhere = uuidv7();
    const agents = await Promise.all(
      [1, 1, 0, 0].map((protocolVersion) => newAgent({ protocolVersion, maxInFlight: 5 })),
    );
    await Promise.all(agents.slice(2).map((agent) => lab.connect(agent, { gatewayId: elsewhere })));
    const engines = [lab.replica.engine, other.engine] as const;
    const engineOf = (index: number) => engines[index % 2] ?? lab.replica.engine;
    const ran = new Map<string, number>();
    const declined = new Set<string>();
    const perform = async (
      agent: LabAgent,
      offers: { request_id: string; generation: number }[],
      turn: number,
    ) => {
      for (const { request_id, generation } of offers) {
        if (agent.protocolVersion > 0 && turn % 7 === 0 && !declined.has(request_id)) {
          declined.add(request_id);
          await engineOf(turn).report(lab.gatewayId, [declinedOf(agent, request_id, generation)]);
          continue;
        }
        ran.set(request_id, (ran.get(request_id) ?? 0) + 1);
        const named = agent.protocolVersion > 0 ? generation : null;
        const [verdict] = await engineOf(turn).report(lab.gatewayId, [resultOf(agent, request_id, named)]);
        expect(verdict?.verdict).toBe("accepted");
      }
    };
    const requests = Array.from({ length: 150 }, (_, index) =>
      dispatch(
        { waitMs: 60_000 },
        { engine: engineOf(index), asking: index % 3 === 0 ? elsewhere : lab.gatewayId },
      ).then(async (verdict) => {
        const agent = agents.find(({ id }) => verdict.state === "assigned" && id === verdict.agent_id);
        if (verdict.state === "assigned" && verdict.offer && agent)
          await perform(agent, [verdict.offer], index + 1);
        return verdict.request_id;
      }),
    );
    const ids = await Promise.all(requests);
    for (let turn = 1; ; turn += 1) {
      const [left] = await lab.superuser<{ n: number }[]>`
        SELECT count(*)::int AS n FROM executions WHERE org_id = ${orgId} AND finished_at IS NULL`;
      if (left?.n === 0) break;
      await Promise.all([
        ...agents.map(async (agent) =>
          perform(agent, await engineOf(turn).takeWork(connectionOf(agent), { again: false, holding: [] }), turn),
        ),
        engineOf(turn).sweep(),
      ]);
    }
    expect(ids.map((id) => ran.get(id))).toEqual(ids.map(() => 1));
    expect(await lab.miscounted()).toEqual([]);
    const rows = await lab.superuser`SELECT DISTINCT status FROM executions WHERE org_id = ${orgId}`;
    expect(rows).toEqual([{ status: "succeeded" }]);
  });
});
