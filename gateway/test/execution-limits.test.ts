// What one agent or worker can take of a gateway: connections, memory, and the time of others.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { dispatchPaths } from "@holdfast/contracts/execution/dispatch";
import { uuidv7 } from "@holdfast/kit/uuid";
import { describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { askRaw } from "../../testkit/api/hostile.ts";
import { connectAgent, dispatch, dispatchBody, type TestAgent } from "../../testkit/gateway/agents.ts";
import { useRig } from "../../testkit/gateway/rig.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { AgentSession } from "../src/execution/agents/session.ts";

const rig = useRig();
const model = () => rig.api.executions;

describe("connections of one agent", () => {
  it("EXEC-01 beyond eight, the oldest one is closed, and the others stay", async () => {
    const agent = model().pair();
    const peers: TestAgent[] = [];
    for (let count = 0; count < 9; count += 1) peers.push(await connectAgent(rig.gateway, agent));
    const [oldest, ...others] = peers;
    expect(await oldest?.next("error")).toMatchObject({ code: "rate_limit_exceeded" });
    expect(await oldest?.closed).toEqual({ code: 4000, reason: "too_many_connections" });
    for (const peer of others) {
      peer.send({ type: "ping", ts: 1 });
      await peer.next("pong");
    }
  });

  it("EXEC-01 one that never reads is disconnected, before its acknowledgements fill the memory", async () => {
    const server = createServer();
    const accepting = new WebSocketServer({ noServer: true });
    const opened = new Promise<{ socket: WebSocket; connection: Duplex }>((resolve) =>
      server.on("upgrade", (request, connection, head) =>
        accepting.handleUpgrade(request, connection, head, (socket) => resolve({ socket, connection })),
      ),
    );
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    atEnd(() => server.close());
    const agent = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await once(agent, "open");
    agent.pause();
    const connected = await opened;
    const about = { agentId: uuidv7(), orgId: uuidv7(), name: "deaf", correlationId: uuidv7() };
    const session = new AgentSession(uuidv7(), about, connected, Date.now());
    const ended = once(connected.socket, "close");
    const ack = { type: "result_ack", generation: 1, verdict: "accepted" } as const;
    for (let sent = 0; sent < 3_000 && !session.isClosed; sent += 1)
      session.send({ ...ack, requestId: "x".repeat(10_000) });
    await ended;
    expect(session.endedBy).toBe("unread");
    agent.terminate();
  });
});

describe("the internal listener", () => {
  it("EXEC-02 refuses a wrong token before it reads the body", async () => {
    for (const path of [dispatchPaths.dispatch, dispatchPaths.dispatchAsync]) {
      const headers = { "x-gateway-token": "x".repeat(40), "content-type": "application/json" };
      const request = { method: "POST", path, headers, body: "{ not JSON" };
      const answer = await askRaw(rig.gateway.internalUrl, {}, request);
      expect(answer.status).toBe(401);
    }
  });

  it("EXEC-02 names its own setting where it refuses a host", async () => {
    const request = { method: "GET", path: "/internal/v1/results/a", headers: { host: "gateway.example" } };
    const answer = await askRaw(rig.gateway.internalUrl, {}, request);
    expect(answer.status).toBe(421);
    expect(answer.body).toContain("HOLDFAST_GATEWAY_HTTP_URL");
  });
});

it("EXEC-04 a large result is read as the api has stored it, which may be a failure", async () => {
  const agent = model().pair();
  const peer = await connectAgent(rig.gateway, agent);
  const body = dispatchBody(agent.orgId);
  const answer = dispatch(rig.gateway, body);
  const { requestId, generation } = await peer.next("execute");
  const stored = { status: "failed", error: "NODE_EXECUTION_FAILED" } as const;
  const execution = model().executions.get(requestId);
  model().before.set(
    "readExecutionResults",
    expect
      .poll(() => execution?.state)
      .toBe("ended")
      .then(() => Object.assign(execution ?? {}, { result: stored })),
  );
  const output = "x".repeat(200_000);
  peer.send({ type: "execute_result", requestId, generation, status: "succeeded", output });
  expect((await answer).body).toEqual(stored);
  model().before.delete("readExecutionResults");
});
