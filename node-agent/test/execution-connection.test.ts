// The connection of an agent that runs steps: what is lost, repeated, refused and moved between it and its gateway.

import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { executionCloseCodes } from "@holdfast/contracts/execution/limits";
import { describe, expect, it } from "vitest";
import { makeAuthority } from "../../testkit/agent/fake-authority.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { startExecutionAgent } from "../src/execution/agent.ts";
import type { ExecutionReport } from "../src/execution/deliveries.ts";
import { openPinnedKeys } from "../src/execution/key-set.ts";
import { openMemoryJournal } from "../src/journal/in-memory.ts";
import { createLog } from "../src/log.ts";
import { countedSteps } from "./support/counted-steps.ts";
import { startTestExecutionAgent } from "./support/execution-agent.ts";
import { sandboxWith } from "./support/host-backend.ts";
import { startStandInGateway } from "./support/stand-in-gateway.ts";

async function connected(options: Parameters<typeof startTestExecutionAgent>[1] = {}) {
  const gateway = await startStandInGateway();
  const agent = await startTestExecutionAgent(gateway, options);
  return { gateway, agent, socket: await gateway.socket() };
}

describe("a connection", () => {
  it("EXEC-07 that is refused with 401 is explained, and not tried again at once", async () => {
    const gateway = await startStandInGateway();
    gateway.refuse = 401;
    const agent = await startTestExecutionAgent(gateway, {}, { isConnected: false });
    await expect.poll(agent.logged).toContain("the gateway refused the agent token (status 401)");
    expect(agent.logged()).toMatch(/<organization id>\.<secret>.*not been revoked/);
    expect(agent.logged()).toContain('"next_attempt_in_ms":30000');
    expect(gateway.upgrades).toEqual([401]);
    expect(agent.logged()).not.toContain(gateway.agentToken);
  });

  it("EXEC-07 that is closed because the agent was revoked is not opened again at once", async () => {
    const { gateway, agent, socket } = await connected();
    socket.close(executionCloseCodes.revoked);
    await expect.poll(agent.logged).toContain("the agent was revoked");
    expect(agent.logged()).toContain('"next_attempt_in_ms":30000');
    expect(gateway.upgrades).toEqual([101]);
  });

  it("EXEC-07 that opens and closes again is tried ever more slowly", async () => {
    const gateway = await startStandInGateway();
    gateway.welcomes = false;
    const agent = await startTestExecutionAgent(gateway, {}, { isConnected: false });
    for (const [index, delay] of [250, 500, 1000].entries()) {
      await expect.poll(() => gateway.sockets[index]?.hello).toBeDefined();
      gateway.sockets[index]?.close(1011);
      await expect.poll(agent.logged).toContain(`"next_attempt_in_ms":${delay}`);
    }
    gateway.welcomes = true;
    await expect.poll(agent.isConnected).toBe(true);
    gateway.sockets.at(-1)?.cut();
    await expect.poll(() => agent.logged().match(/"next_attempt_in_ms":250/g)).toHaveLength(2);
  });

  it("EXEC-01 is given up when nothing comes back on pings, and another one is opened", async () => {
    const gateway = await startStandInGateway();
    gateway.answersPings = false;
    const agent = await startTestExecutionAgent(gateway, { times: { pingMs: 20, silentMs: 100 } });
    await expect.poll(agent.logged).toContain("nothing came from the gateway for 0.1 s");
    gateway.answersPings = true;
    await expect.poll(() => gateway.sockets.at(-1)?.of("ping").length).toBeGreaterThan(5);
    expect(gateway.sockets[0]?.of("ping").length).toBeGreaterThan(0);
    expect(agent.isConnected()).toBe(true);
  });

  it("EXEC-07 to a gateway with a certificate of a private CA needs that CA", async () => {
    const authority = await makeAuthority();
    const tls = await authority.server();
    const gateway = await startStandInGateway({ tls });
    const caFile = join(scratchDirectory(), "ca.pem");
    writeFileSync(caFile, authority.rootPem);
    const stranger = await startTestExecutionAgent(gateway, {}, { isConnected: false });
    await expect.poll(stranger.logged).toMatch(/cannot be reached: .*certificate/);
    const agent = await startTestExecutionAgent(gateway, { env: { VESPID_AGENT_TLS_CA_FILE: caFile } });
    expect(agent.isConnected()).toBe(true);
    await expect(
      startTestExecutionAgent(gateway, { env: { HOLDFAST_EXECUTION_CA_FILE: "/nonexistent.pem" } }),
    ).rejects.toThrow(/HOLDFAST_EXECUTION_CA_FILE/);
  });

  it("EXEC-02 brings newer signing keys, and never older ones", async () => {
    const gateway = await startStandInGateway();
    const { keySetOf, makeKey } = await import("./support/stand-in-gateway.ts");
    const second = makeKey("second");
    gateway.keySets.push(keySetOf(2, [second], [gateway.key]));
    const directory = scratchDirectory();
    const agent = await startTestExecutionAgent(gateway, { directory });
    const socket = await gateway.socket();
    const old = gateway.order();
    socket.send(old);
    await expect.poll(() => socket.of("declined")).toMatchObject([{ requestId: old.requestId }]);
    const fresh = gateway.order({ key: second });
    socket.send(fresh);
    expect(await gateway.result(fresh.requestId)).toMatchObject({ status: "succeeded" });
    await agent.stop();
    gateway.keySets = [keySetOf(3, [gateway.key], [gateway.key])];
    const again = await startTestExecutionAgent(gateway, { directory });
    expect(gateway.sockets.at(-1)?.hello?.keySetVersion).toBe(2);
    await expect.poll(again.logged).toContain("new signing keys were refused");
  });

  it("EXEC-02 to a gateway of another system stays open, and nothing that is not signed is run", async () => {
    const gateway = await startStandInGateway();
    gateway.welcomes = false;
    const agent = await startTestExecutionAgent(gateway, { times: { pingMs: 20 } });
    const steps = countedSteps();
    const { type, requestId, organizationId, userId, kind, payload } = gateway.shell(steps.script("x"));
    (await gateway.socket()).send({ type, requestId, organizationId, userId, kind, payload });
    expect(await gateway.result(requestId)).toMatchObject({
      ...{ status: "failed", error: expect.stringMatching(/^NODE_EXECUTION_FAILED: it is not a signed dispatch/) },
    });
    expect(steps.runs()).toEqual([]);
    expect(agent.isConnected()).toBe(true);
  });

  it("EXEC-01 pinned for another agent is closed", async () => {
    const gateway = await startStandInGateway();
    const agentId = randomUUID();
    const credentials = { ...gateway.credentials(), agentId } as never;
    const agent = await startTestExecutionAgent(gateway, { credentials }, { isConnected: false });
    await expect.poll(agent.logged).toContain(`takes this agent for ${gateway.agentId}`);
    expect(agent.isConnected()).toBe(false);
  });
});

describe("draining", () => {
  it("EXEC-06 of the gateway: new work comes by another socket, what runs is finished on the old one", async () => {
    const { gateway, socket } = await connected();
    const steps = countedSteps();
    const long = gateway.shell(steps.script("long"));
    socket.send(long);
    await expect.poll(steps.runs).toEqual(["long"]);
    socket.send({ type: "drain" });
    const second = await gateway.socket(socket);
    expect(second.hello?.holding).toEqual([{ requestId: long.requestId, generation: 1 }]);
    const short = gateway.order();
    second.send(short);
    await gateway.result(short.requestId);
    expect(second.of("execute_result")).toHaveLength(1);
    expect(socket.closed()).toBeUndefined();
    steps.release();
    await gateway.result(long.requestId);
    expect(socket.of("execute_result")).toMatchObject([{ requestId: long.requestId }]);
    await expect.poll(socket.closed).toBe(1000);
    expect(second.closed()).toBeUndefined();
    expect(gateway.upgrades).toEqual([101, 101]);
  });

  it("EXEC-06 of a gateway that is gone before the step ends: its result comes by the new socket", async () => {
    const { gateway, socket } = await connected();
    const steps = countedSteps();
    const order = gateway.shell(steps.script("one"));
    socket.send(order);
    await expect.poll(steps.runs).toEqual(["one"]);
    socket.send({ type: "drain" });
    const second = await gateway.socket(socket);
    socket.cut();
    steps.release();
    await gateway.result(order.requestId);
    expect(second.of("execute_result")).toMatchObject([{ requestId: order.requestId, status: "succeeded" }]);
    expect(gateway.upgrades).toEqual([101, 101]);
  });

  it("EXEC-04 of a gateway that took a result with it: the result is sent again by the new socket", async () => {
    const { gateway, socket } = await connected();
    gateway.verdict = undefined;
    const order = gateway.order();
    socket.send(order);
    await gateway.result(order.requestId);
    socket.send({ type: "drain" });
    const second = await gateway.socket(socket);
    // It has an open link that the result was sent by.
    expect(second.of("execute_result")).toEqual([]);
    socket.cut();
    await expect.poll(() => second.of("execute_result")).toMatchObject([{ requestId: order.requestId }]);
  });

  it("EXEC-06 of an agent without a connection is announced as soon as there is one", async () => {
    const { gateway, agent, socket } = await connected();
    const steps = countedSteps();
    const order = gateway.shell(steps.script("one"));
    socket.send(order);
    await expect.poll(steps.runs).toEqual(["one"]);
    await gateway.stop();
    const stopped = agent.stop();
    await gateway.start();
    const next = await gateway.socket(socket);
    await expect.poll(() => next.of("drain")).toHaveLength(1);
    steps.release();
    await stopped;
    expect(gateway.resultOf(order.requestId)).toMatchObject({ status: "succeeded" });
  });

  it("EXEC-06 of the agent: it says so, declines new work, finishes what runs and ends", async () => {
    const { gateway, agent, socket } = await connected();
    const steps = countedSteps();
    const running = gateway.shell(steps.script("one"));
    socket.send(running);
    await expect.poll(steps.runs).toEqual(["one"]);
    const stopped = agent.stop();
    await expect.poll(() => socket.of("drain")).toHaveLength(1);
    const late = gateway.order();
    socket.send(late);
    await expect.poll(() => socket.of("declined")).toMatchObject([{ requestId: late.requestId }]);
    expect(socket.of("declined")[0]?.reason).toBe("the agent is about to stop");
    steps.release();
    await stopped;
    expect(gateway.resultOf(running.requestId)).toMatchObject({ status: "succeeded" });
    await expect.poll(socket.closed).toBe(1000);
  });
});

describe("many agents", () => {
  it("EXEC-01 run in one process, each with its own connection", async () => {
    const gateway = await startStandInGateway();
    const log = createLog({ write: () => undefined });
    const agents = Array.from({ length: 100 }, () =>
      startExecutionAgent({
        credentials: gateway.credentials(),
        agentVersion: "1.0.0",
        journal: openMemoryJournal<ExecutionReport>(),
        keys: openPinnedKeys({ file: undefined, paired: { version: 1, keys: [gateway.key.jwk] }, log }),
        sandbox: sandboxWith(),
        log,
      }),
    );
    await expect.poll(() => agents.filter((agent) => agent.isConnected()).length).toBe(100);
    const orders = gateway.sockets.map((socket) => {
      const order = gateway.order();
      socket.send(order);
      return order.requestId;
    });
    await Promise.all(orders.map((requestId) => gateway.result(requestId)));
    await Promise.all(agents.map((agent) => agent.stop()));
  });
});
