// What an agent does with the requests that it is given: results, repetitions, forgeries, leases and cancellations.

import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { countedSteps } from "./support/counted-steps.ts";
import { startTestExecutionAgent } from "./support/execution-agent.ts";
import { startStandInGateway } from "./support/stand-in-gateway.ts";

async function connected(options: Parameters<typeof startTestExecutionAgent>[1] = {}) {
  const gateway = await startStandInGateway();
  const agent = await startTestExecutionAgent(gateway, options);
  return { gateway, agent, socket: await gateway.socket() };
}

describe("a result", () => {
  it("EXEC-04 is sent again after a restart of the gateway until it is acknowledged, and never afterwards", async () => {
    const { gateway, socket } = await connected();
    gateway.verdict = undefined;
    const order = gateway.order();
    socket.send(order);
    await gateway.result(order.requestId);
    await gateway.stop();
    gateway.results.length = 0;
    await gateway.start();
    const second = await gateway.socket(socket);
    expect(second.hello?.holding).toEqual([{ requestId: order.requestId, generation: 1 }]);
    expect(await gateway.result(order.requestId)).toMatchObject({
      status: "succeeded",
      output: { said: "hello" },
    });
    gateway.verdict = "accepted";
    gateway.results.length = 0;
    second.cut();
    const third = await gateway.socket(second);
    await gateway.result(order.requestId);
    third.cut();
    const fourth = await gateway.socket(third);
    expect(fourth.hello?.holding).toEqual([]);
    expect(gateway.results).toHaveLength(1);
  });

  it("EXEC-02 stands for the newest delivery of its request, and the verdict on an older one is ignored", async () => {
    const { gateway, socket } = await connected();
    gateway.verdict = undefined;
    const order = gateway.order();
    const { requestId } = order;
    socket.send(order);
    await gateway.result(requestId);
    socket.send({ ...order, generation: 2 });
    await expect.poll(() => gateway.results.map(({ generation }) => generation)).toEqual([1, 2]);
    socket.send({ type: "result_ack", requestId, generation: 1, verdict: "late" });
    socket.cut();
    const next = await gateway.socket(socket);
    expect(next.hello?.holding).toEqual([{ requestId, generation: 2 }]);
  });
});

describe("a repeated dispatch", () => {
  it("EXEC-02 never runs twice: while it runs, when its result waits, and when that was acknowledged", async () => {
    const { gateway, agent, socket } = await connected();
    const steps = countedSteps();
    const order = gateway.shell(steps.script("one"));
    const { requestId } = order;
    gateway.verdict = undefined;
    socket.send(order);
    await expect.poll(steps.runs).toEqual(["one"]);
    socket.send({ ...order, generation: 2 });
    await expect.poll(() => socket.of("accepted").map(({ generation }) => generation)).toEqual([1, 2]);
    steps.release();
    await expect.poll(() => gateway.results).toMatchObject([{ generation: 2, status: "succeeded" }]);
    socket.send({ ...order, generation: 2 });
    await expect.poll(() => gateway.results).toHaveLength(2);
    socket.send({ type: "result_ack", requestId, generation: 2, verdict: "accepted" });
    socket.send({ ...order, generation: 3 });
    await expect.poll(agent.logged).toContain("it was run before, and its result was acknowledged");
    expect(steps.runs()).toEqual(["one"]);
    expect(socket.of("declined")).toEqual([]);
  });

  it("EXEC-02 with a forged signature changes nothing about the request that runs", async () => {
    const { gateway, agent, socket } = await connected();
    const steps = countedSteps();
    const order = gateway.shell(steps.script("one"));
    socket.send(order);
    await expect.poll(steps.runs).toEqual(["one"]);
    socket.send({ ...order, generation: 2, signature: "x..y" });
    socket.send({ type: "execute", requestId: order.requestId, generation: 3 });
    await expect.poll(agent.logged).toContain("is not a signed dispatch was refused");
    steps.release();
    expect(await gateway.result(order.requestId)).toMatchObject({ generation: 1 });
    expect(socket.of("declined")).toEqual([]);
  });
});

describe("a dispatch that is not signed as it must be", () => {
  const steps = countedSteps();
  const changes: [string, (gateway: Awaited<ReturnType<typeof startStandInGateway>>) => object, RegExp][] = [
    [
      "for another agent",
      (gateway) => gateway.shell(steps.script("x"), { agentId: randomUUID() }),
      /signed for the agent/,
    ],
    [
      "for another organization",
      (gateway) => gateway.shell(steps.script("x"), { organizationId: randomUUID() }),
      /signed for the organization/,
    ],
    [
      "expired",
      (gateway) => gateway.shell(steps.script("x"), { expiresAt: "2026-01-01T00:00:00.000Z" }),
      /expired at 2026/,
    ],
    [
      "with another payload",
      (gateway) => ({ ...gateway.order(), payload: gateway.shell(steps.script("x")).payload }),
      /signature is not valid/,
    ],
    [
      "without a signature",
      (gateway) => ({ ...gateway.shell(steps.script("x")), signature: undefined }),
      /not a signed dispatch/,
    ],
    [
      "with an empty secret",
      (gateway) => ({ ...gateway.shell(steps.script("x")), secret: "" }),
      /not a signed dispatch/,
    ],
  ];
  it.for(changes)("EXEC-02 is declined with the reason, logged, and not run: %s", async ([, make, why]) => {
    const { gateway, agent, socket } = await connected();
    const order = make(gateway) as { requestId: string };
    socket.send(order);
    await expect.poll(() => socket.of("declined")).toMatchObject([{ requestId: order.requestId, generation: 1 }]);
    expect(socket.of("declined")[0]?.reason).toMatch(why);
    expect(agent.logged()).toContain(order.requestId);
    expect(steps.runs()).toEqual([]);
  });
});

describe("a lease", () => {
  it("EXEC-04 is renewed at a quarter of its duration for all that is held", async () => {
    const gateway = await startStandInGateway();
    gateway.leaseMs = 200;
    const agent = await startTestExecutionAgent(gateway);
    const socket = await gateway.socket();
    const steps = countedSteps();
    const orders = ["a", "b"].map((name) => gateway.shell(steps.script(name)));
    for (const order of orders) socket.send(order);
    const holding = orders.map(({ requestId }) => ({ requestId, generation: 1 }));
    await expect.poll(() => socket.of("renew").at(-1)?.holding).toEqual(expect.arrayContaining(holding));
    const before = socket.of("renew").length;
    await expect.poll(() => socket.of("renew").length).toBeGreaterThan(before + 2);
    steps.release();
    await Promise.all(orders.map(({ requestId }) => gateway.result(requestId)));
    expect(agent.running()).toBe(0);
  });

  it("EXEC-04 that nobody renews ends nothing: the step goes on without a connection, and reports afterwards", async () => {
    const { gateway, agent, socket } = await connected();
    const steps = countedSteps();
    const order = gateway.shell(`echo before; ${steps.script("one")}; echo after`);
    socket.send(order);
    await expect.poll(steps.runs).toEqual(["one"]);
    await gateway.stop();
    await expect.poll(agent.isConnected).toBe(false);
    steps.release();
    await expect.poll(agent.running).toBe(0);
    await gateway.start();
    expect(await gateway.result(order.requestId)).toMatchObject({
      ...{ status: "succeeded", output: { stdout: "before\nafter\n" } },
    });
    expect(steps.runs()).toEqual(["one"]);
  });
});

describe("a cancellation", () => {
  it("EXEC-02 ends the step with everything it started, and reports that", async () => {
    const { gateway, socket } = await connected();
    const steps = countedSteps();
    const order = gateway.shell(`sleep 1000 & setsid sleep 1000 & ${steps.script("one")}`);
    const { requestId } = order;
    socket.send(order);
    await expect.poll(steps.runs).toEqual(["one"]);
    const group = steps.group();
    expect(group().length).toBeGreaterThanOrEqual(2);
    socket.send({ type: "cancel", requestId: "another:one:1", generation: 1, reason: "unknown" });
    socket.send({ type: "cancel", requestId, generation: 1, reason: "by a person" });
    expect(await gateway.result(requestId)).toMatchObject({
      ...{ status: "failed", error: "EXECUTION_CANCELLED", output: { exitCode: null, timedOut: false } },
    });
    expect(group()).toEqual([]);
  });

  it("EXEC-02 of an older delivery does not end the newest", async () => {
    const { gateway, agent, socket } = await connected();
    const steps = countedSteps();
    const order = gateway.shell(steps.script("one"), { generation: 2 });
    const { requestId } = order;
    socket.send(order);
    await expect.poll(steps.runs).toEqual(["one"]);
    socket.send({ type: "cancel", requestId, generation: 1, reason: "given to another" });
    steps.release();
    expect(await gateway.result(requestId)).toMatchObject({ status: "succeeded", generation: 2 });
    expect(agent.logged()).not.toContain("step cancelled");
  });
});
