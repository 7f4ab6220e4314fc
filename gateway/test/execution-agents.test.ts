// Agents at the public listener: who is let in, what is said first, what each kind of agent is sent, and how it ends.

import { requestIdOf } from "@holdfast/contracts/execution/dispatch";
import { MOST_FRAME_BYTES } from "@holdfast/contracts/terminal/frames";
import { uuidv7 } from "@holdfast/kit/uuid";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { OlderAgent } from "../../testkit/agents/older-agent.ts";
import { connectAgent, dialAgent, dispatch, dispatchBody, helloOf } from "../../testkit/gateway/agents.ts";
import type { ModelAgent } from "../../testkit/gateway/executions.ts";
import { startTestGateway } from "../../testkit/gateway/gateway.ts";
import { useRig } from "../../testkit/gateway/rig.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";

const rig = useRig();
const model = () => rig.api.executions;

async function older(agent: ModelAgent, options: Partial<ConstructorParameters<typeof OlderAgent>[0]> = {}) {
  const started = await new OlderAgent({ url: rig.gateway.agentUrl, token: agent.token, ...options }).start();
  atEnd(() => started.stop());
  await vi.waitFor(() => expect([...model().sessions.values()].map((one) => one.agent_id)).toContain(agent.id));
  return started;
}

const refusalOf = (dialled: Awaited<ReturnType<typeof dialAgent>>) => {
  if ("peer" in dialled) throw new Error("was let in");
  return dialled.refused;
};

describe("before the upgrade", () => {
  it.for<[string, string | undefined]>([
    ["no token", undefined],
    ["a token of another form", "hfx_abc"],
    ["an unknown token", `${uuidv7()}.hfx_${"a".repeat(40)}`],
  ])("ID-15 %s is refused", async ([, token]) => {
    const refused = refusalOf(await dialAgent(rig.gateway, token));
    expect(refused).toMatchObject({ status: 401, code: "AGENT_TOKEN_REFUSED" });
    if (token) expect(rig.gateway.logged()).not.toContain(token);
  });

  it("EXEC-07 a revoked agent is refused, and counted", async () => {
    const agent = model().pair();
    agent.revoked = true;
    const count = () =>
      rig.gateway.metric("holdfast_gateway_upgrades_refused_total", 'code="agent_token_refused"');
    const before = await count();
    expect(refusalOf(await dialAgent(rig.gateway, agent.token)).status).toBe(401);
    expect(await count()).toBe(before + 1);
  });

  it("EXEC-01 without the api it is 503, so that agents keep their backoff", async () => {
    model().unavailable.add("admitAgent");
    const refused = refusalOf(await dialAgent(rig.gateway, model().pair().token));
    model().unavailable.clear();
    expect(refused).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
  });

  it("EXEC-01 a page of another site and another Host are refused", async () => {
    const { token } = model().pair();
    const page = await dialAgent(rig.gateway, token, { origin: "https://evil.example" });
    expect(refusalOf(page)).toMatchObject({ status: 403, code: "origin_refused" });
    const host = await dialAgent(rig.gateway, token, { headers: { host: "agents.example.com" } });
    expect(refusalOf(host)).toMatchObject({ status: 421, code: "host_refused" });
  });

  it("EXEC-08 the host of GATEWAY_WS_URL is accepted, and both paths", async () => {
    const url = "wss://agents.example.com/ws/executor";
    const gateway = await startTestGateway(rig.api, { GATEWAY_WS_URL: url });
    const agent = model().pair();
    for (const path of ["/ws", "/ws/executor"]) {
      const agentUrl = `${gateway.url.replace("http", "ws")}${path}`;
      const dialled = await dialAgent({ agentUrl }, agent.token, { headers: { host: "agents.example.com" } });
      expect(dialled).toHaveProperty("peer");
    }
    expect(rig.api.announcements.map((one) => one.execution_url)).toContain(url);
    await gateway.stop();
  });
});

describe("the first frames", () => {
  it("EXEC-01 hello is answered with welcome, and its capabilities reach the api", async () => {
    const agent = model().pair();
    const capabilities = { kinds: ["agent.execute"], tags: ["east", "group:alpha"], maxInFlight: 3 };
    const peer = await connectAgent(rig.gateway, agent, { capabilities });
    const welcome = peer.frames[0];
    expect(welcome).toMatchObject({
      type: "welcome",
      agentId: agent.id,
      organizationId: agent.orgId,
      protocolVersion: 1,
    });
    const session = [...model().sessions.values()].find((one) => one.agent_id === agent.id);
    expect(session).toMatchObject({ capabilities, protocol_version: 1, agent_version: "1.0.0" });
    peer.send({ type: "ping", ts: 123.5 });
    expect(await peer.next("pong")).toEqual({ type: "pong", ts: 123.5 });
  });

  it.for<[string, (send: (data: string | Buffer) => void) => void]>([
    ["a ping before hello", (send) => send(JSON.stringify({ type: "ping", ts: 1 }))],
    [
      "a result before hello",
      (send) => send(JSON.stringify({ type: "execute_result", requestId: "a", status: "failed" })),
    ],
    [
      "a hello without capabilities",
      (send) => send(JSON.stringify({ type: "hello", agentVersion: "1", name: "x" })),
    ],
    ["text that is not JSON", (send) => send("hello")],
    ["bytes", (send) => send(Buffer.from("{}"))],
  ])("EXEC-01 %s closes the socket", async ([, first]) => {
    const dialled = await dialAgent(rig.gateway, model().pair().token);
    if ("refused" in dialled) throw new Error(dialled.refused.body);
    first((data) => dialled.peer.socket.send(data, { binary: typeof data !== "string" }));
    expect(await dialled.peer.closed).toMatchObject({ code: 4400 });
    // It may be an agent of another system, which knows no other frames.
    expect(dialled.peer.frames).toEqual([]);
  });

  it("EXEC-01 frames of a newer version are ignored, and an agent that sent hello learns what is malformed", async () => {
    const peer = await connectAgent(rig.gateway, model().pair());
    peer.send({ type: "telemetry", load: 3 });
    peer.send({ type: "ping", ts: 1 });
    await peer.next("pong");
    peer.socket.send("not JSON");
    expect(await peer.next("error")).toMatchObject({ code: "frame_malformed", correlationId: expect.any(String) });
    expect(await peer.closed).toMatchObject({ code: 4400 });
  });
});

describe("an agent of another system", () => {
  it("EXEC-08 serves a step, and is sent nothing but pong and what it knows", async () => {
    const agent = model().pair();
    const started = await older(agent, { pingMs: 20 });
    const payload = { connectorId: "echo", actionId: "say", input: { a: 1 }, retries: 3 };
    const body = dispatchBody(agent.orgId, { payload, secret: "s3cret-value" });
    const answer = await dispatch(rig.gateway, body);
    expect(answer).toMatchObject({ status: 200, body: { status: "succeeded", output: { echo: { a: 1 } } } });
    expect(started.executed).toEqual([
      {
        type: "execute",
        requestId: requestIdOf(body),
        organizationId: agent.orgId,
        userId: body.requestedByUserId,
        kind: "connector.action",
        payload: { connectorId: "echo", actionId: "say", input: { a: 1 } },
        secret: "s3cret-value",
      },
    ]);
    await started.until(() => started.pongs.length > 1);
    model().cancel(requestIdOf(body));
    await started.until(() => started.pongs.length > 3);
    expect(started.dropped).toEqual([]);
    expect(rig.gateway.logged()).not.toContain("s3cret-value");
  });

  it("EXEC-02 a secret that is absent is not sent as null", async () => {
    const agent = model().pair();
    const started = await older(agent);
    await dispatch(rig.gateway, dispatchBody(agent.orgId));
    expect(started.dropped).toEqual([]);
    expect(started.executed[0]).not.toHaveProperty("secret");
  });

  it("EXEC-05 a shell task runs, with its exit code", async () => {
    const agent = model().pair();
    await older(agent);
    const answer = await dispatch(rig.gateway, dispatchBody(agent.orgId, shellStep("echo hi; exit 3")));
    expect(answer.body).toMatchObject({
      status: "failed",
      error: "NODE_EXECUTION_FAILED",
      output: { exitCode: 3, stdout: "hi\n" },
    });
  });

  it("EXEC-05 a shell task without an exit code is a failure, whatever the agent says", async () => {
    const agent = model().pair();
    await older(agent, { run: async () => ({ status: "succeeded", output: { accepted: true } }) });
    const answer = await dispatch(rig.gateway, dispatchBody(agent.orgId, shellStep("true")));
    expect(answer.body).toMatchObject({ status: "failed", error: "NODE_EXECUTION_FAILED" });
  });

  it("EXEC-02 a backend that it does not know is not sent to it, and declined in its place", async () => {
    const agent = model().pair();
    const started = await older(agent);
    const step = shellStep("true");
    step.payload.node.config.sandbox = { backend: "bubblewrap" };
    const answer = await dispatch(rig.gateway, dispatchBody(agent.orgId, step));
    expect(answer.body).toMatchObject({ status: "failed", error: expect.stringContaining("bubblewrap") });
    expect(started.executed).toEqual([]);
  });

  it("EXEC-04 its socket is cycled once before the deadline, and it sends the result that it still has", async () => {
    const agent = model().pair();
    let sent = 0;
    const started = await older(agent, {
      async run() {
        sent += 1;
        // The result is there, but does not get through.
        started.socket?.pause();
        const send = started.socket?.send.bind(started.socket);
        if (started.socket && send) started.socket.send = () => undefined;
        started.socket?.resume();
        return { status: "succeeded", output: { echo: "late" } };
      },
    });
    const answer = await dispatch(rig.gateway, dispatchBody(agent.orgId, { timeoutMs: 4_000 }));
    expect(answer.body).toEqual({ status: "succeeded", output: { echo: "late" } });
    expect([sent, started.opened, started.closes.map(({ code }) => code)]).toEqual([1, 2, [4000]]);
  });

  it("EXEC-02 a request that it did not answer is never sent again", async () => {
    const agent = model().pair();
    const started = await older(agent, { run: () => new Promise(() => undefined) });
    const answer = await dispatch(rig.gateway, dispatchBody(agent.orgId, { timeoutMs: 1_500 }));
    // By the deadline it may not have connected again.
    const error = expect.stringMatching(/^(NODE_EXECUTION_TIMEOUT|AGENT_DISCONNECTED)$/);
    expect(answer.body).toEqual({ status: "failed", error });
    expect(started.executed).toHaveLength(1);
    expect(started.closes.map(({ code }) => code)).toEqual([4000]);
  });

  it("EXEC-07 revoking closes its socket at once, without a frame", async () => {
    const agent = model().pair();
    const started = await older(agent);
    model().revoke(agent);
    await started.until(() => started.refusals.length > 0);
    expect([started.closes[0]?.code, started.refusals[0], started.dropped]).toEqual([4401, 401, []]);
  });
});

describe("the end of a connection", () => {
  it("EXEC-07 of a revoked agent: an error frame, then 4401; frames that still arrive are ignored", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    await expect.poll(() => rig.api.following()).toBeGreaterThan(0);
    model().revoke(agent);
    expect(await peer.next("error")).toMatchObject({ code: "agent_token_refused" });
    expect(await peer.closed).toMatchObject({ code: 4401 });
    await expect.poll(() => [...model().sessions.values()].some((one) => one.agent_id === agent.id)).toBe(false);
  });

  it("EXEC-07 revocation that was missed is found by the next touch", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    agent.revoked = true;
    expect(await peer.closed).toMatchObject({ code: 4401 });
  });

  it("EXEC-01 an agent that is silent for too long is disconnected", async () => {
    const now = Date.now();
    const agent = model().pair();
    const [silent, talking] = [await connectAgent(rig.gateway, agent), await connectAgent(rig.gateway, agent)];
    const clock = vi.spyOn(Date, "now").mockImplementation(() => now + 59_000);
    talking.send({ type: "ping", ts: 1 });
    await talking.next("pong");
    clock.mockImplementation(() => now + 61_500);
    expect((await silent.closed).code).toSatisfy((code) => code === 4408 || code === 1006);
    talking.send({ type: "ping", ts: 2 });
    await talking.next("pong");
    clock.mockRestore();
  });

  it("EXEC-01 values of GATEWAY_AGENT_STALE_MS that would disconnect an agent that pings are refused", async () => {
    await expect(startTestGateway(rig.api, { GATEWAY_AGENT_STALE_MS: "15000" })).rejects.toThrow(
      /GATEWAY_AGENT_STALE_MS is "15000". Allowed: a whole number of milliseconds from 20000/,
    );
  });
});

describe("hostile agents", () => {
  it("SEC-03 a second hello is ignored: what an agent holds and speaks is said once", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    const lines = () =>
      rig.gateway
        .logged()
        .split("\n")
        .filter((line) => line.includes(agent.id));
    const connected = () => lines().filter((line) => line.includes("an agent has connected")).length;
    const before = connected();
    const holding = Array.from({ length: 1000 }, (_, at) => ({ requestId: `held-${at}`, generation: 1 }));
    const { protocolVersion: _, ...older } = helloOf({ holding });
    for (const hello of [helloOf({ holding }), older]) peer.send(hello);
    peer.send({ type: "ping", ts: 1 });
    await peer.next("pong");
    expect(connected()).toBe(before);
    expect(await rig.gateway.metric("holdfast_gateway_agents", 'reason="in_flight"')).toBe(0);
    const answer = dispatch(rig.gateway, dispatchBody(agent.orgId));
    const { requestId, generation } = await peer.next("execute");
    expect(generation).toBe(1);
    peer.send({ type: "execute_result", requestId, generation, status: "succeeded", output: 1 });
    expect(await peer.next("result_ack")).toMatchObject({ verdict: "accepted" });
    expect((await answer).status).toBe(200);
  });

  it("SEC-03 a frame over the limit ends the connection, and nothing else", async () => {
    const agent = model().pair();
    const [hostile, other] = [
      await connectAgent(rig.gateway, agent),
      await connectAgent(rig.gateway, model().pair()),
    ];
    hostile.socket.send(JSON.stringify({ type: "ping", ts: 1, more: "x".repeat(MOST_FRAME_BYTES) }));
    expect(await hostile.closed).toMatchObject({ code: 1009 });
    other.send({ type: "ping", ts: 1 });
    await other.next("pong");
  });

  it("EXEC-02 a result for a request of another agent changes nothing", async () => {
    const [agent, foreign] = [model().pair(), model().pair()];
    const [serving, hostile] = [await connectAgent(rig.gateway, agent), await connectAgent(rig.gateway, foreign)];
    const body = dispatchBody(agent.orgId);
    const answer = dispatch(rig.gateway, body);
    const { requestId, generation } = await serving.next("execute");
    hostile.send({ type: "execute_result", requestId, generation, status: "succeeded", output: "forged" });
    expect(await hostile.next("result_ack")).toMatchObject({ verdict: "unknown" });
    serving.send({ type: "execute_result", requestId, generation, status: "succeeded", output: "true" });
    expect((await answer).body).toEqual({ status: "succeeded", output: "true" });
  });

  it("SEC-03 a flood of output is cut with a marker; the result and other agents are not kept waiting", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    const answer = dispatch(rig.gateway, dispatchBody(agent.orgId));
    const { requestId, generation } = await peer.next("execute");
    const gate = Promise.withResolvers<void>();
    model().before.set("reportExecutionEvents", gate.promise);
    const text = "x".repeat(60_000);
    for (let seq = 1; seq <= 100; seq += 1)
      peer.send({ type: "log", requestId, generation, seq, stream: "stdout", text });
    peer.send({ type: "execute_result", requestId, generation, status: "succeeded", output: 1 });
    peer.send({ type: "ping", ts: 7 });
    await peer.next("pong");
    gate.resolve();
    model().before.clear();
    expect((await answer).body).toEqual({ status: "succeeded", output: 1 });
    const mine = model().events.filter((event) => event.request_id === requestId);
    const logs = mine.filter((event) => event.type === "log");
    expect(logs.length).toBeLessThan(100);
    expect(logs.at(-1)).toMatchObject({
      seq: 100,
      text: expect.stringMatching(/\d+ pieces of output dropped here/),
    });
    expect(mine.at(-1)?.type).toBe("result");
  });

  it("SEC-03 a flood of results is read as fast as the api takes them, and none is lost", async () => {
    // Its own: agents of other tests connect again and resend results, which would be counted, too.
    const gateway = await startTestGateway(rig.api);
    const [hostile, other] = [
      await connectAgent(gateway, model().pair()),
      await connectAgent(gateway, model().pair()),
    ];
    const unsent = () => gateway.metric("holdfast_gateway_agents", 'reason="unsent_events"');
    const gate = Promise.withResolvers<void>();
    model().before.set("reportExecutionEvents", gate.promise);
    onTestFinished(async () => {
      gate.resolve();
      model().before.clear();
      await gateway.stop();
    });
    const output = "x".repeat(900_000);
    for (let at = 0; at < 40; at += 1)
      hostile.send({
        type: "execute_result",
        requestId: `flood:${at}:1`,
        generation: 1,
        status: "succeeded",
        output,
      });
    await expect.poll(unsent).toBeGreaterThan(4);
    for (let ts = 1; ts <= 10; ts += 1) {
      other.send({ type: "ping", ts });
      await other.next("pong");
      expect(await unsent()).toBeLessThan(8);
    }
    gate.resolve();
    model().before.clear();
    const acks = () => hostile.frames.filter(({ type }) => type === "result_ack").length;
    await expect.poll(acks, { timeout: 30_000 }).toBe(40);
  });

  it("EXEC-01 an invalid frame is ignored: closing would make the agent send it again", async () => {
    const peer = await connectAgent(rig.gateway, model().pair());
    peer.send({ type: "execute_result", requestId: 7, status: "succeeded" });
    peer.send({ type: "accepted", requestId: "a" });
    peer.send({ type: "ping", ts: 1 });
    await peer.next("pong");
    expect(rig.gateway.logged()).toContain("ignores an invalid frame");
  });

  it("EXEC-05 a result with an output that cannot be stored is a failure, not lost", async () => {
    const agent = model().pair();
    const peer = await connectAgent(rig.gateway, agent);
    const answer = dispatch(rig.gateway, dispatchBody(agent.orgId));
    const { requestId, generation } = await peer.next("execute");
    const deep = `${"[".repeat(3000)}${"]".repeat(3000)}`;
    peer.socket.send(
      `{"type":"execute_result","requestId":${JSON.stringify(requestId)},"generation":${generation},"status":"succeeded","output":${deep}}`,
    );
    expect(await peer.next("result_ack")).toMatchObject({ verdict: "accepted" });
    expect((await answer).body).toMatchObject({ status: "failed", error: expect.stringContaining("nested") });
  });
});

function shellStep(script: string) {
  const node = {
    id: "step-1",
    type: "agent.execute",
    config: { task: { type: "shell", script } } as { task: object; sandbox?: object },
  };
  return { kind: "agent.execute" as const, payload: { nodeId: "step-1", node } };
}
