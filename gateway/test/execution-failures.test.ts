// What is not lost, and not run twice, when the api, the connection or the gateway fails at the wrong moment.

import { requestIdOf } from "@holdfast/contracts/execution/dispatch";
import { uuidv7 } from "@holdfast/kit/uuid";
import { describe, expect, it, vi } from "vitest";
import { OlderAgent } from "../../testkit/agents/older-agent.ts";
import {
  connectAgent,
  dialAgent,
  dispatch,
  dispatchAsync,
  dispatchBody,
  helloOf,
  resultOf,
  type TestAgent,
} from "../../testkit/gateway/agents.ts";
import { startTestGateway } from "../../testkit/gateway/gateway.ts";
import { useRig } from "../../testkit/gateway/rig.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";

const rig = useRig();
const model = () => rig.api.executions;
const executes = (peer: TestAgent) => peer.frames.filter(({ type }) => type === "execute");
const succeed = (peer: TestAgent, { requestId, generation }: { requestId: string; generation: number }) =>
  peer.send({ type: "execute_result", requestId, generation, status: "succeeded", output: "done" });
const done = { status: "succeeded", output: "done" };
const opensOf = (agentId: string) =>
  model().calls.filter(
    ({ name, body }) => name === "openAgentSession" && (body as { agent_id: string }).agent_id === agentId,
  );

async function older(orgId: string, run?: ConstructorParameters<typeof OlderAgent>[0]["run"]) {
  const agent = model().pair({ orgId });
  const options = { url: rig.gateway.agentUrl, token: agent.token, ...(run ? { run } : {}) };
  const started = await new OlderAgent(options).start();
  atEnd(() => started.stop());
  await expect.poll(() => [...model().sessions.values()].some((one) => one.agent_id === agent.id)).toBe(true);
  return started;
}

describe("while the api is away", () => {
  it("EXEC-04 a result waits for it, is acknowledged after it, and reaches the caller", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    const answer = dispatch(rig.gateway, dispatchBody(agent.orgId));
    const execute = await peer.next("execute");
    await rig.api.goAway();
    peer.send({ ...execute, type: "accepted" });
    succeed(peer, execute);
    peer.send({ type: "ping", ts: 1 });
    await peer.next("pong");
    expect(peer.frames.some(({ type }) => type === "result_ack")).toBe(false);
    await rig.api.comeBack();
    expect(await peer.next("result_ack")).toMatchObject({ verdict: "accepted" });
    expect((await answer).body).toEqual(done);
    const types = model()
      .events.filter((event) => event.request_id === execute.requestId)
      .map(({ type }) => type);
    expect(types).toEqual(["accepted", "result"]);
  });

  it("EXEC-02 a dispatch waits for it, and results are not ready", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    await rig.api.goAway();
    const body = dispatchBody(agent.orgId);
    const answer = dispatch(rig.gateway, body);
    const result = await resultOf(rig.gateway, requestIdOf(body));
    expect([result.status, result.body["code"]]).toEqual([404, "RESULT_NOT_READY"]);
    await rig.api.comeBack();
    succeed(peer, await peer.next("execute"));
    expect((await answer).body).toEqual(done);
  });

  it("EXEC-05 longer than the request may take, callers get an error that is not 503", async () => {
    const agent = model().pair();
    await connectAgent(rig.gateway, agent);
    model().unavailable.add("requestExecutions");
    const body = dispatchBody(agent.orgId, { timeoutMs: 1000 });
    const [sync, async] = await Promise.all([dispatch(rig.gateway, body), dispatchAsync(rig.gateway, body)]);
    model().unavailable.clear();
    expect([sync.status, sync.body]).toEqual([200, { status: "failed", error: "GATEWAY_UNAVAILABLE" }]);
    expect([async.status, async.body["code"], async.body["retryable"]]).toEqual([
      502,
      "GATEWAY_DISPATCH_FAILED",
      true,
    ]);
  });

  it("EXEC-07 what was missed is made up for: work, stopping, revocation", async () => {
    const orgId = uuidv7();
    const [working, revoked] = [model().pair({ orgId }), model().pair()];
    const [peer, other] = [await connectAgent(rig.gateway, working), await connectAgent(rig.gateway, revoked)];
    const answer = dispatchAsync(rig.gateway, dispatchBody(orgId));
    const first = await peer.next("execute");
    await answer;
    await rig.api.goAway();
    revoked.revoked = true;
    const execution = model().executions.get(first.requestId);
    if (!execution) throw new Error("not stored");
    execution.state = "ended";
    execution.result = { status: "failed", error: "EXECUTION_CANCELLED" };
    const missed = dispatchBody(orgId);
    const verdicts = await model().answer("/internal/v1/executions", {
      gateway_id: uuidv7(),
      requests: [{ body: missed, correlation_id: "elsewhere" }],
    });
    expect(verdicts?.value).toMatchObject({ verdicts: [{ state: "assigned", offer: null }] });
    await rig.api.comeBack();
    expect(await peer.next("cancel")).toMatchObject({ requestId: first.requestId, generation: 1 });
    expect(await peer.next("execute")).toMatchObject({ requestId: requestIdOf(missed), generation: 1 });
    expect((await other.closed).code).toBe(4401);
    // What it holds is known: nothing is sent twice over a connection that stands.
    expect(executes(peer)).toHaveLength(2);
  });
});

describe("a connection that ends while the api opens it", () => {
  it("EXEC-06 is closed after that: no work is given to it", async () => {
    const agent = model().pair();
    const gate = Promise.withResolvers<void>();
    model().before.set("openAgentSession", gate.promise);
    const dialled = await dialAgent(rig.gateway, agent.token);
    if ("refused" in dialled) throw new Error(dialled.refused.body);
    dialled.peer.send(helloOf());
    await expect.poll(() => opensOf(agent.id).length).toBe(1);
    dialled.peer.socket.terminate();
    const closes = () =>
      model().calls.filter(({ name, body }) => {
        return name === "closeAgentSession" && (body as { agent_id: string }).agent_id === agent.id;
      });
    await expect.poll(() => closes().length).toBe(1);
    model().before.clear();
    gate.resolve();
    await expect.poll(() => closes().length).toBe(2);
    await expect.poll(() => [...model().sessions.values()].some((one) => one.agent_id === agent.id)).toBe(false);
  });
});

describe("a decline that the api does not have yet", () => {
  it("EXEC-02 keeps the request from being sent again: another agent may be about to get it", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    const answer = dispatch(rig.gateway, dispatchBody(agent.orgId));
    const { requestId, generation } = await peer.next("execute");
    model().unavailable.add("reportExecutionEvents");
    peer.send({ type: "declined", requestId, generation, reason: "it has no room" });
    peer.send({ type: "ping", ts: 1 });
    await peer.next("pong");
    await rig.api.goAway();
    await rig.api.comeBack();
    await expect.poll(() => opensOf(agent.id).length).toBe(2);
    expect(opensOf(agent.id)[1]?.body).toMatchObject({ holding: [{ requestId, generation }] });
    model().unavailable.clear();
    // This api gives it to the same agent.
    const again = await peer.next("execute");
    expect(again).toMatchObject({ requestId, generation: 2 });
    succeed(peer, again);
    expect((await answer).body).toEqual(done);
    expect(executes(peer)).toHaveLength(2);
  });
});

describe("an answer of the api that is lost", () => {
  it("EXEC-02 with a request in it costs no step, and nothing runs twice", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    model().loseAnswerTo.add("requestExecutions");
    const answer = dispatch(rig.gateway, dispatchBody(agent.orgId));
    succeed(peer, await peer.next("execute"));
    expect((await answer).body).toEqual(done);
    expect(executes(peer)).toHaveLength(1);
  });

  it("EXEC-04 to a result: it is reported again, and the caller gets what is stored", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    const answer = dispatch(rig.gateway, dispatchBody(agent.orgId));
    const execute = await peer.next("execute");
    model().loseAnswerTo.add("reportExecutionEvents");
    succeed(peer, execute);
    expect(await peer.next("result_ack")).toMatchObject({ verdict: "duplicate" });
    expect((await answer).body).toEqual(done);
  });

  it("EXEC-02 with work of another gateway in it: the session is opened again", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    model().loseAnswerTo.add("takeAgentWork");
    const body = dispatchBody(agent.orgId);
    await model().answer("/internal/v1/executions", {
      gateway_id: uuidv7(),
      requests: [{ body, correlation_id: "elsewhere" }],
    });
    succeed(peer, await peer.next("execute"));
    await peer.next("result_ack");
    expect(executes(peer)).toHaveLength(1);
  });
});

describe("a connection that breaks", () => {
  it("EXEC-02 what the agent does not hold is sent again, what it holds is not", async () => {
    const agent = model().pair();
    const broken = await connectAgent(rig.gateway, agent);
    const answers = [
      dispatch(rig.gateway, dispatchBody(agent.orgId)),
      dispatch(rig.gateway, dispatchBody(agent.orgId)),
    ];
    const [held, lost] = [await broken.next("execute"), await broken.next("execute")];
    broken.socket.terminate();
    const holding = [{ requestId: held.requestId, generation: held.generation }];
    const peer = await connectAgent(rig.gateway, agent, { holding });
    const again = await peer.next("execute");
    expect([again.requestId, again.generation]).toEqual([lost.requestId, lost.generation]);
    succeed(peer, held);
    succeed(peer, again);
    for (const answer of answers) expect((await answer).body).toEqual(done);
    expect(executes(peer)).toHaveLength(1);
  });

  it("EXEC-04 an older agent sends its result over the next one, and is not sent the request again", async () => {
    const orgId = uuidv7();
    const gate = Promise.withResolvers<void>();
    const agent = await older(orgId, async () => {
      await gate.promise;
      return { status: "succeeded", output: { echo: 1 } };
    });
    const answer = dispatch(rig.gateway, dispatchBody(orgId));
    await agent.until(() => agent.executed.length === 1);
    agent.socket?.terminate();
    gate.resolve();
    expect((await answer).body).toEqual({ status: "succeeded", output: { echo: 1 } });
    expect([agent.executed.length, agent.opened]).toEqual([1, 2]);
  });

  it("EXEC-05 an older agent that does not come back costs the request its deadline", async () => {
    const orgId = uuidv7();
    const agent = await older(orgId, () => new Promise(() => undefined));
    const answer = dispatch(rig.gateway, dispatchBody(orgId, { timeoutMs: 1500 }));
    await agent.until(() => agent.executed.length === 1);
    agent.stop();
    expect((await answer).body).toEqual({ status: "failed", error: "AGENT_DISCONNECTED" });
  });

  it("EXEC-02 a request for an older agent that was not written yet waits for its next connection", async () => {
    const orgId = uuidv7();
    const agent = await older(orgId);
    const gate = Promise.withResolvers<void>();
    model().before.set("requestExecutions", gate.promise);
    const before = model().calls.length;
    const answer = dispatch(rig.gateway, dispatchBody(orgId));
    const called = (name: string) =>
      model()
        .calls.slice(before)
        .some((call) => call.name === name);
    await expect.poll(() => called("requestExecutions")).toBe(true);
    // The api has not noticed yet that the agent is away.
    model().before.set("closeAgentSession", gate.promise);
    agent.socket?.terminate();
    await expect.poll(() => called("closeAgentSession")).toBe(true);
    gate.resolve();
    model().before.clear();
    expect((await answer).body).toMatchObject({ status: "succeeded" });
    expect(agent.executed).toHaveLength(1);
  });

  it("EXEC-01 an agent that drains gets no new work, and finishes what it has", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    const answer = dispatch(rig.gateway, dispatchBody(agent.orgId));
    const execute = await peer.next("execute");
    peer.send({ type: "drain" });
    const session = () => [...model().sessions.values()].find((one) => one.agent_id === agent.id);
    await expect.poll(() => session()?.draining).toBe(true);
    const { status, body } = await dispatch(rig.gateway, dispatchBody(agent.orgId));
    expect([status, body["details"]]).toMatchObject([503, { agents: [{ reason: "draining" }] }]);
    succeed(peer, execute);
    expect((await answer).body).toEqual(done);
  });
});

describe("several gateways", () => {
  it("EXEC-06 an agent at one serves what is dispatched at another", async () => {
    const gateway = await startTestGateway(rig.api);
    await expect.poll(() => rig.api.following()).toBe(2);
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    // The caller learns it from the news: nobody polls.
    vi.useFakeTimers({ toFake: ["setInterval"] });
    const answer = dispatch(gateway, dispatchBody(agent.orgId));
    const execute = await peer.next("execute");
    vi.useRealTimers();
    succeed(peer, execute);
    expect((await answer).body).toEqual(done);
    await gateway.stop();
  });

  it("EXEC-06 a caller learns the result also when the news of it was lost", async () => {
    const gateway = await startTestGateway(rig.api);
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    const answer = dispatch(gateway, dispatchBody(agent.orgId));
    const execute = await peer.next("execute");
    const { publish } = rig.api;
    rig.api.publish = () => undefined;
    succeed(peer, execute);
    expect((await answer).body).toEqual(done);
    rig.api.publish = publish;
    await gateway.stop();
  });

  it("EXEC-06 the newest connection of an agent gets new work, and the older one lives on", async () => {
    const agent = model().pair();
    const old = await connectAgent(rig.gateway, agent);
    const first = dispatch(rig.gateway, dispatchBody(agent.orgId));
    const held = await old.next("execute");
    const { requestId, generation } = held;
    const fresh = await connectAgent(rig.gateway, agent, { holding: [{ requestId, generation }] });
    const second = dispatch(rig.gateway, dispatchBody(agent.orgId));
    succeed(fresh, await fresh.next("execute"));
    expect((await second).body).toEqual(done);
    succeed(old, held);
    expect((await first).body).toEqual(done);
    expect(old.socket.readyState).toBe(old.socket.OPEN);
  });
});

describe("a gateway that stops", () => {
  it("EXEC-06 lets agents move and steps end; their callers are answered", async () => {
    const gateway = await startTestGateway(rig.api, { HOLDFAST_DRAIN_SECONDS: "60" });
    const agent = model().pair();
    const peer = await connectAgent(gateway, agent);
    const answer = dispatch(gateway, dispatchBody(agent.orgId));
    const execute = await peer.next("execute");
    const stopped = gateway.stop();
    await peer.next("drain");
    const session = () => [...model().sessions.values()].find((one) => one.agent_id === agent.id);
    await expect.poll(() => session()?.draining).toBe(true);
    const { requestId, generation } = execute;
    const moved = await connectAgent(rig.gateway, agent, { holding: [{ requestId, generation }] });
    const next = dispatch(rig.gateway, dispatchBody(agent.orgId));
    succeed(peer, execute);
    expect(await peer.next("result_ack")).toMatchObject({ verdict: "accepted" });
    expect((await answer).body).toEqual(done);
    succeed(moved, await moved.next("execute"));
    expect((await next).body).toEqual(done);
    expect(await peer.closed).toMatchObject({ code: 1001 });
    await stopped;
  });

  it("EXEC-05 answers who still waits at the end with GATEWAY_SHUTDOWN; the request goes on", async () => {
    const gateway = await startTestGateway(rig.api);
    const agent = model().pair();
    const peer = await connectAgent(gateway, agent);
    const started = await new OlderAgent({ url: gateway.agentUrl, token: model().pair().token }).start();
    const body = dispatchBody(agent.orgId);
    const answer = dispatch(gateway, body);
    const { requestId, generation } = await peer.next("execute");
    await Promise.all([gateway.stop(), peer.next("drain")]);
    expect([(await answer).status, (await answer).body]).toEqual([
      200,
      { status: "failed", error: "GATEWAY_SHUTDOWN" },
    ]);
    await started.until(() => started.closes.length > 0);
    expect([started.closes[0]?.code, started.dropped]).toEqual([1001, []]);
    started.stop();
    const again = dispatch(rig.gateway, body);
    const moved = await connectAgent(rig.gateway, agent, { holding: [{ requestId, generation }] });
    succeed(moved, { requestId, generation });
    expect((await again).body).toEqual(done);
    expect(executes(moved)).toHaveLength(0);
  });

  it("EXEC-01 an idle one stops at once", async () => {
    const gateway = await startTestGateway(rig.api, { HOLDFAST_DRAIN_SECONDS: "600" });
    const agent = model().pair();
    const peer = await connectAgent(gateway, agent);
    await gateway.stop();
    expect((await peer.closed).code).toBe(1001);
    // A session is opened again when news may have been missed, as at the start; not because of the stop.
    const opens = opensOf(agent.id).map(({ body }) => body as { draining: boolean });
    expect(opens.length).toBeGreaterThan(0);
    expect(opens.filter(({ draining }) => draining)).toEqual([]);
    expect([...model().sessions.values()].some((one) => one.agent_id === agent.id)).toBe(false);
  });
});
