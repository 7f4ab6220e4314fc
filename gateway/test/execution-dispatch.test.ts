// Dispatching at the internal listener: status codes and bodies as existing callers know them, waiting, joining, and what
// is left of it on every other listener.

import { requestIdOf } from "@holdfast/contracts/execution/dispatch";
import { uuidv7 } from "@holdfast/kit/uuid";
import { describe, expect, it } from "vitest";
import { askRaw } from "../../testkit/api/hostile.ts";
import {
  ask,
  connectAgent,
  dispatch,
  dispatchAsync,
  dispatchBody,
  resultOf,
  type TestAgent,
} from "../../testkit/gateway/agents.ts";
import { startTestGateway } from "../../testkit/gateway/gateway.ts";
import { useRig } from "../../testkit/gateway/rig.ts";

const rig = useRig();
const model = () => rig.api.executions;

/** Answers every request with what it was sent. */
function echo(peer: TestAgent): TestAgent {
  const answer = (frame: TestAgent["frames"][number]) => {
    if (frame.type !== "execute") return;
    const { requestId, generation, payload: output } = frame;
    peer.send({ type: "accepted", requestId, generation });
    peer.send({ type: "execute_result", requestId, generation, status: "succeeded", output });
  };
  peer.frames.forEach(answer);
  peer.socket.on("message", (data) => answer(JSON.parse(String(data))));
  return peer;
}

describe("the dispatch token", () => {
  it.for<[string, string | null]>([
    ["none", null],
    ["a wrong one", "x".repeat(40)],
    ["the service token", `hfv_${"g".repeat(43)}`],
  ])("EXEC-02 %s is refused on all routes", async ([, token]) => {
    const body = dispatchBody(uuidv7());
    for (const [path, sent] of [
      ["/internal/v1/dispatch", body],
      ["/internal/v1/dispatch-async", body],
      ["/internal/v1/results/a", undefined],
    ] as const) {
      const { status, body: answer } = await ask(rig.gateway, path, { body: sent, token });
      expect([path, status, answer["code"]]).toEqual([path, 401, "UNAUTHORIZED"]);
    }
    if (token) expect(rig.gateway.logged()).not.toContain(token);
  });

  it("EXEC-02 is never the service token", async () => {
    const token = "s".repeat(40);
    const same = startTestGateway(rig.api, { HOLDFAST_SERVICE_TOKEN: token, HOLDFAST_DISPATCH_TOKEN: token });
    await expect(same).rejects.toThrow(
      /HOLDFAST_DISPATCH_TOKEN \(or GATEWAY_SERVICE_TOKEN\) and HOLDFAST_SERVICE_TOKEN are the same/,
    );
    const env = {
      HOLDFAST_SERVICE_TOKEN: "",
      GATEWAY_SERVICE_TOKEN: "short-but-16-long",
      HOLDFAST_DISPATCH_TOKEN: "",
    };
    const gateway = await startTestGateway(rig.api, env);
    expect(gateway.logged()).toContain("HOLDFAST_SERVICE_TOKEN is not set");
    await gateway.stop();
  });
});

describe("what is dispatched", () => {
  it("EXEC-02 is answered with the result, signed for its agent, and acknowledged after the api has it", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    const body = dispatchBody(agent.orgId, { secret: "shh", timeoutMs: 30_000 });
    const answer = dispatch(rig.gateway, body);
    const execute = await peer.next("execute");
    const requestId = requestIdOf(body);
    expect(execute).toEqual({
      type: "execute",
      requestId,
      organizationId: agent.orgId,
      userId: body.requestedByUserId,
      kind: body.kind,
      payload: body.payload,
      secret: "shh",
      agentId: agent.id,
      generation: 1,
      expiresAt: expect.any(String),
      timeoutMs: 30_000,
      signature: "header..signature",
      correlationId: expect.any(String),
    });
    peer.send({ type: "accepted", requestId, generation: 1 });
    peer.send({ type: "progress", requestId, generation: 1, message: "half", percent: 50 });
    peer.send({ type: "log", requestId, generation: 1, seq: 1, stream: "stdout", text: "hi" });
    peer.send({ type: "renew", holding: [{ requestId, generation: 1 }] });
    peer.send({
      type: "execute_result",
      requestId,
      generation: 1,
      status: "failed",
      error: "E_CONNECTOR: no route",
    });
    expect(await peer.next("result_ack")).toEqual({
      type: "result_ack",
      requestId,
      generation: 1,
      verdict: "accepted",
    });
    expect(await answer).toMatchObject({
      status: 200,
      body: { status: "failed", error: "E_CONNECTOR: no route" },
    });
    const types = model()
      .events.filter((event) => event.request_id === requestId)
      .map(({ type }) => type);
    expect(types).toEqual(["accepted", "progress", "log", "renewed", "result"]);
    expect(rig.gateway.logged()).toContain(`"request_id":"${requestId}"`);
  });

  it("EXEC-02 again is answered from what is stored, and not run again", async () => {
    const agent = model().pair();
    const peer = echo(await connectAgent(rig.gateway, agent));
    const body = dispatchBody(agent.orgId);
    const requestId = requestIdOf(body);
    expect(await dispatchAsync(rig.gateway, body)).toMatchObject({
      status: 201,
      body: { requestId, dispatched: true },
    });
    await peer.next("result_ack");
    const again = await dispatchAsync(rig.gateway, body);
    expect([again.status, again.body]).toEqual([200, { requestId, dispatched: false, cached: true }]);
    expect((await dispatch(rig.gateway, body)).body).toEqual({ status: "succeeded", output: body.payload });
    expect((await resultOf(rig.gateway, requestId)).body).toEqual({ status: "succeeded", output: body.payload });
    expect(peer.frames.filter(({ type }) => type === "execute")).toHaveLength(1);
  });

  it("EXEC-02 twice at the same time is one request, and both are answered", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    const body = dispatchBody(agent.orgId);
    const answers = [dispatch(rig.gateway, body), dispatch(rig.gateway, body), dispatch(rig.gateway, body)];
    const { requestId, generation } = await peer.next("execute");
    await expect
      .poll(() => rig.gateway.metric("holdfast_gateway_agents", 'reason="waiting_callers"'))
      .toBeGreaterThan(0);
    const notReady = await resultOf(rig.gateway, requestId);
    expect([notReady.status, notReady.body["code"]]).toEqual([404, "RESULT_NOT_READY"]);
    peer.send({ type: "execute_result", requestId, generation, status: "succeeded", output: 1 });
    for (const answer of answers) expect((await answer).body).toEqual({ status: "succeeded", output: 1 });
    expect(peer.frames.filter(({ type }) => type === "execute")).toHaveLength(1);
  });

  it("EXEC-02 what comes together is one request to the api", async () => {
    const agent = model().pair();
    const hello = { capabilities: { kinds: ["connector.action"], maxInFlight: 100 } };
    const peer = await connectAgent(rig.gateway, agent, hello);
    const gates = {
      requestExecutions: Promise.withResolvers<void>(),
      reportExecutionEvents: Promise.withResolvers<void>(),
    };
    for (const [name, { promise }] of Object.entries(gates)) model().before.set(name, promise);
    const callsOf = (name: string) => model().calls.filter((call) => call.name === name).length;
    const before = { requests: callsOf("requestExecutions"), events: callsOf("reportExecutionEvents") };
    const answers = Array.from({ length: 50 }, () => dispatch(rig.gateway, dispatchBody(agent.orgId)));
    await expect.poll(() => rig.gateway.metric("holdfast_gateway_agents", 'reason="waiting_callers"')).toBe(50);
    gates.requestExecutions.resolve();
    const executes = () => peer.frames.filter(({ type }) => type === "execute");
    await expect.poll(() => executes().length).toBe(50);
    echo(peer);
    await expect.poll(() => rig.gateway.metric("holdfast_gateway_agents", 'reason="unsent_events"')).toBe(100);
    gates.reportExecutionEvents.resolve();
    model().before.clear();
    for (const answer of answers) expect((await answer).body["status"]).toBe("succeeded");
    // Two are under way at most; what comes meanwhile is the next. Events have one, to stay in order.
    expect(callsOf("requestExecutions") - before.requests).toBeLessThanOrEqual(3);
    expect(callsOf("reportExecutionEvents") - before.events).toBeLessThanOrEqual(2);
  });

  it("EXEC-01 a request that nobody waits for any more goes on", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    const left = new AbortController();
    const body = dispatchBody(agent.orgId);
    const answer = ask(rig.gateway, "/internal/v1/dispatch", { body, signal: left.signal });
    const { requestId, generation } = await peer.next("execute");
    left.abort();
    await expect(answer).rejects.toThrow();
    peer.send({ type: "execute_result", requestId, generation, status: "succeeded", output: 1 });
    await peer.next("result_ack");
    expect((await resultOf(rig.gateway, requestId)).body).toEqual({ status: "succeeded", output: 1 });
  });

  it("EXEC-02 a declined request goes to another agent, and a cancelled one reaches its agent", async () => {
    const orgId = uuidv7();
    const [one, two] = [model().pair({ orgId }), model().pair({ orgId })];
    const peers = [await connectAgent(rig.gateway, one), await connectAgent(rig.gateway, two)];
    const body = dispatchBody(orgId);
    const answer = dispatch(rig.gateway, body);
    const isGiven = (peer: TestAgent) => peer.frames.some(({ type }) => type === "execute");
    await expect.poll(() => peers.some(isGiven)).toBe(true);
    const [first, other] = peers.toSorted((a, b) => Number(isGiven(b)) - Number(isGiven(a))) as [
      TestAgent,
      TestAgent,
    ];
    first.send({ type: "drain" });
    first.send({ type: "declined", requestId: requestIdOf(body), generation: 1, reason: "about to stop" });
    const { requestId, generation } = await other.next("execute");
    expect(generation).toBe(2);
    model().cancel(requestId);
    expect(await other.next("cancel")).toEqual({ type: "cancel", requestId, generation, reason: "cancelled" });
    other.send({ type: "execute_result", requestId, generation, status: "failed", error: "EXECUTION_CANCELLED" });
    expect((await answer).body).toEqual({ status: "failed", error: "EXECUTION_CANCELLED" });
  });
});

describe("the id of another organization's request", () => {
  it("SEC-01 returns nothing of it, also if that ends meanwhile", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    const body = dispatchBody(agent.orgId);
    const answer = dispatch(rig.gateway, body);
    const { requestId, generation } = await peer.next("execute");
    const requests = () =>
      model().calls.filter(
        (call) => call.name === "requestExecutions" && JSON.stringify(call.body).includes(body.runId),
      );
    const gate = Promise.withResolvers<void>();
    model().before.set("requestExecutions", gate.promise);
    const foreign = dispatch(rig.gateway, { ...body, organizationId: uuidv7() });
    await expect.poll(() => requests().length).toBe(2);
    peer.send({ type: "execute_result", requestId, generation, status: "succeeded", output: "theirs" });
    expect((await answer).body).toMatchObject({ output: "theirs" });
    gate.resolve();
    model().before.clear();
    const { status, body: refused } = await foreign;
    expect([status, refused["code"], JSON.stringify(refused)]).toEqual([
      400,
      "BAD_REQUEST",
      expect.not.stringContaining("theirs"),
    ]);
  });
});

describe("without an agent", () => {
  it("EXEC-05 the answer is 503 NO_AGENT_AVAILABLE, with the reason of each agent", async () => {
    const orgId = uuidv7();
    const none = await dispatch(rig.gateway, dispatchBody(orgId));
    expect([none.status, none.body["code"], none.body["message"]]).toEqual([
      503,
      "NO_AGENT_AVAILABLE",
      "The organization has no agents.",
    ]);
    const [offline, other] = [model().pair({ orgId, name: "a" }), model().pair({ orgId, name: "b" })];
    await connectAgent(rig.gateway, other, { capabilities: { kinds: ["agent.execute"] } });
    for (const send of [dispatch, dispatchAsync]) {
      const { status, body } = await send(rig.gateway, dispatchBody(orgId));
      expect([status, body["code"]]).toEqual([503, "NO_AGENT_AVAILABLE"]);
      expect(body["details"]).toMatchObject({
        agents: [
          { agent_id: offline.id, name: "a", reason: "offline" },
          { agent_id: other.id, name: "b", reason: "kind_missing" },
        ],
      });
    }
  });

  it("EXEC-03 waitMs waits for one that comes", async () => {
    const agent = model().pair();
    const answer = dispatch(rig.gateway, dispatchBody(agent.orgId, { waitMs: 60_000 }));
    await expect
      .poll(() => [...model().executions.values()].some((one) => one.body.organizationId === agent.orgId))
      .toBe(true);
    const later = await dispatchAsync(rig.gateway, dispatchBody(agent.orgId, { waitMs: 60_000 }));
    expect(later.status).toBe(201);
    echo(await connectAgent(rig.gateway, agent));
    expect((await answer).body).toMatchObject({ status: "succeeded" });
    await expect.poll(async () => (await resultOf(rig.gateway, String(later.body["requestId"]))).status).toBe(200);
  });

  it("EXEC-05 waitMs ends as 503 too", async () => {
    const agent = model().pair();
    const { status, body } = await dispatch(rig.gateway, dispatchBody(agent.orgId, { waitMs: 100 }));
    expect([status, body["code"]]).toEqual([503, "NO_AGENT_AVAILABLE"]);
    expect(body["details"]).toMatchObject({ agents: [{ agent_id: agent.id, reason: "offline" }] });
  });
});

describe("what is not valid", () => {
  const orgId = uuidv7();
  it.for<[string, unknown]>([
    ["no body", "{}"],
    ["an organization that is not a UUID", dispatchBody("org-1")],
    ["an attempt of 0", dispatchBody(orgId, { attemptCount: 0 })],
    ["an attempt of 1001", dispatchBody(orgId, { attemptCount: 1001 })],
    ["a timeout of 999", dispatchBody(orgId, { timeoutMs: 999 })],
    ["a timeout of 600001", dispatchBody(orgId, { timeoutMs: 600_001 })],
    ["an unknown kind", { ...dispatchBody(orgId), kind: "shell" }],
    ["an empty secret", dispatchBody(orgId, { secret: "" })],
    ["text that is not JSON", "{"],
    [
      "a payload that is nested too deep",
      JSON.stringify(dispatchBody(orgId)).replace('"hello"', `${"[".repeat(5000)}${"]".repeat(5000)}`),
    ],
  ])("EXEC-02 %s is 400 BAD_REQUEST", async ([, body]) => {
    for (const send of [dispatch, dispatchAsync]) {
      const answer = await send(rig.gateway, body);
      expect([answer.status, answer.body["code"]]).toEqual([400, "BAD_REQUEST"]);
    }
  });

  it("EXEC-02 a body of a megabyte is served, a larger one refused; a foreign request with the same id looks invalid", async () => {
    const agent = model().pair();
    echo(await connectAgent(rig.gateway, agent));
    const body = (bytes: number) => {
      const made = dispatchBody(agent.orgId);
      const rest = JSON.stringify({ ...made, payload: { ...made.payload, input: "" } }).length;
      return { ...made, payload: { ...made.payload, input: "x".repeat(bytes - rest) } };
    };
    const most = await dispatch(rig.gateway, body(1024 * 1024 - 2000));
    expect(most.body["status"]).toBe("succeeded");
    const larger = await dispatch(rig.gateway, body(1024 * 1024 + 1));
    expect([larger.status, larger.body["code"]]).toEqual([413, String(larger.body["code"]).toUpperCase()]);
    const mine = dispatchBody(agent.orgId);
    await dispatch(rig.gateway, mine);
    const foreign = await dispatch(rig.gateway, { ...mine, organizationId: uuidv7() });
    expect([foreign.status, foreign.body["code"]]).toEqual([400, "BAD_REQUEST"]);
  });

  it("EXEC-05 a result of an unknown request is not ready", async () => {
    const answer = await resultOf(rig.gateway, "run:node/1:1");
    expect([answer.status, answer.body["code"]]).toEqual([404, "RESULT_NOT_READY"]);
  });
});

describe("internal routes", () => {
  const paths = ["/internal/v1/dispatch", "/internal/v1/dispatch-async", "/internal/v1/results/a", "/internal"];

  it("SEC-04 are refused on the public listener, which names where they are", async () => {
    for (const path of paths) {
      for (const body of [undefined, dispatchBody(uuidv7())]) {
        const answer = await ask({ internalUrl: rig.gateway.url }, path, { body });
        expect([answer.status, answer.body["code"]]).toEqual([404, "internal_listener_only"]);
        expect(answer.body["next_step"]).toContain("gateway.internal_url");
      }
    }
  });

  it("SEC-04 are unknown on the node-facing listener, and sockets on the internal one", async () => {
    for (const path of paths) {
      const tls = { cert: rig.node.cert, key: rig.node.key };
      const answer = await askRaw(rig.gateway.nodeUrl, tls, {
        method: "POST",
        path,
        headers: { connection: "close" },
      });
      expect([answer.status, JSON.parse(answer.body)]).toMatchObject([404, { code: "route_not_found" }]);
    }
    for (const path of ["/ws", "/v1/terminal", "/metrics", "/readyz"]) {
      const answer = await ask(rig.gateway, path);
      expect([path, answer.status]).toEqual([path, 404]);
    }
  });

  it("SEC-04 are plain HTTP on loopback only", async () => {
    const env = { HOLDFAST_GATEWAY_INTERNAL_BIND: "0.0.0.0", GATEWAY_HTTP_URL: "http://gateway:3003" };
    await expect(startTestGateway(rig.api, env)).rejects.toThrow(
      /HOLDFAST_GATEWAY_HTTP_URL is http:\/\/gateway:3003, without TLS/,
    );
    const gateway = await startTestGateway(rig.api, { HOLDFAST_GATEWAY_INTERNAL_BIND: "0.0.0.0" });
    await expect(ask(gateway, "/internal/v1/results/a")).rejects.toThrow();
    const readiness = await (await fetch(`${gateway.url}/readyz`)).json();
    expect(readiness).toMatchObject({ checks: { internal_listener: { ok: true } } });
    const url = gateway.internalUrl.replace("http", "https");
    const secure = await askRaw(
      url,
      { ca: [...rig.api.authority.trustBundle] },
      {
        method: "GET",
        path: "/internal/v1/results/a",
        headers: { connection: "close" },
      },
    );
    expect(secure.status).toBe(401);
    await gateway.stop();
  });

  it("EXEC-02 do not exist without a dispatch token", async () => {
    const gateway = await startTestGateway(rig.api, { HOLDFAST_DISPATCH_TOKEN: "" });
    expect(gateway.internalUrl).toContain("undefined");
    expect(gateway.logged()).toContain("HOLDFAST_DISPATCH_TOKEN is not set");
    await gateway.stop();
  });
});
