// Two gateways whose Redis is lost: what is open goes on, what cannot work gets one clear error, and everything is back
// with Redis, without a restart.

import { describe, expect, it, onTestFinished } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { comeUp, connectClient, connectNode, dialNode, type TestGateway } from "../../testkit/gateway/gateway.ts";
import { useTwoGateways } from "../../testkit/gateway/two-gateways.ts";

const without = lacks("redis");
const two = useTwoGateways();

const readyz = async (gateway: TestGateway) => {
  const response = await fetch(`${gateway.url}/readyz`);
  const { checks } = (await response.json()) as { checks: Record<string, { ok: boolean; reason?: string }> };
  return { status: response.status, redis: checks["redis"] };
};
const reachable = (gateway: TestGateway) => gateway.metric("holdfast_gateway_store_reachable", "redis");

async function until(state: "lost" | "back"): Promise<void> {
  for (const gateway of [two.a, two.b])
    await expect.poll(() => reachable(gateway), { timeout: 20_000 }).toBe(state === "back" ? 1 : 0);
}

/** Until the end of the test. */
async function loseRedis(): Promise<void> {
  onTestFinished(async () => {
    await two.redis.start();
    await until("back");
  });
  await two.redis.stop();
  await until("lost");
}

describe.skipIf(without)("two gateways without Redis", () => {
  it("TERM-07 report it, in readiness, metrics and log, and stay ready for what they can still do", async () => {
    const { a } = two;
    expect(await readyz(a)).toEqual({ status: 200, redis: undefined });
    expect(await reachable(a)).toBe(1);
    await loseRedis();
    expect(await readyz(a)).toEqual({
      ...{ status: 200, redis: { ok: false, reason: "terminal_binding_unavailable: Redis is unreachable" } },
    });
    expect(a.logged()).toContain("Redis is unreachable");
    expect(a.logged()).not.toContain(new URL(two.redis.url).password);
  });

  it("TERM-07 keep what is open, also across gateways, and open what meets at one of them", async () => {
    const { a, b } = two;
    const across = await two.open({ client: a, stream: b });
    await loseRedis();
    across.stream.type("goes on");
    await across.client.until("goes on");
    for (const at of [a, b]) {
      const { client, stream } = await two.open({ client: at, stream: at });
      stream.type("opened without Redis");
      await client.until("opened without Redis");
    }
  });

  it("TERM-07 tell the node's stream at once why it is not passed on, and the client with one error", async () => {
    const { a, b, api, node } = two;
    await loseRedis();
    const failure = {
      code: "terminal_relay_unavailable",
      message: "This gateway cannot reach Redis, so it cannot find the gateway that has this terminal.",
    };
    const refused = Promise.withResolvers<void>();
    api.onTask = async () => {
      await refused.promise;
      return { failure };
    };
    onTestFinished(() => {
      api.onTask = () => new Promise(() => undefined);
    });
    const { client, sessionId } = await two.begin(a);
    const dialled = await dialNode(b, { nodeId: node.id, sessionId }, node);
    expect(dialled).toMatchObject({ refused: { status: 503, code: failure.code } });
    expect("refused" in dialled && JSON.parse(dialled.refused.body)).toMatchObject({ message: failure.message });
    // As the agent reports it.
    refused.resolve();
    expect(await client.next("error")).toMatchObject({
      ...{ code: "terminal_binding_unavailable", hop: "browser_terminal_ws", retryable: true },
    });
    await client.closed;
    expect(client.frames.filter(({ type }) => type === "error")).toHaveLength(1);
  });

  it("TERM-05 TERM-07 end an opening within its deadline, if nobody says anything", async () => {
    const { a, api, node } = two;
    await loseRedis();
    const { token } = api.grant({ node_id: node.id, deadline_seconds: 0.2 });
    const client = await connectClient(a, token);
    expect(await client.next("error")).toMatchObject({ code: "terminal_binding_unavailable" });
  });

  it("TERM-07 tell a client that attaches where its shell is not, and leave the shell alone", async () => {
    const { a, b, api, node } = two;
    const { client, stream, sessionId } = await two.open({ client: a, stream: a });
    await loseRedis();
    const takeovers = api.takeovers.length;
    const grant = { session_id: sessionId, node_id: node.id, purpose: "attach", deadline_seconds: 0.2 } as const;
    const newer = await connectClient(b, api.grant(grant).token);
    expect(await newer.next("error")).toMatchObject({ code: "terminal_binding_unavailable" });
    expect(api.takeovers).toHaveLength(takeovers);
    stream.type("undisturbed");
    await client.until("undisturbed");
  });

  it("TERM-07 find everything again when Redis is back empty, without a restart", async () => {
    const { a, b, redis } = two;
    const before = await two.open({ client: a, stream: b });
    await redis.stop();
    await until("lost");
    const during = await two.open({ client: b, stream: b });
    await redis.start();
    await until("back");
    for (const [terminal, through] of [
      [before, b],
      [during, a],
    ] as const) {
      terminal.stream.socket.terminate();
      await terminal.client.next("unresponsive");
      await comeUp(await two.reconnect(through, terminal.sessionId));
      await terminal.client.next("responsive");
    }
    const { client, stream } = await two.open({ client: b, stream: a });
    stream.type("as before");
    await client.until("as before");
  });

  it("TERM-07 find everything again after a flush", async () => {
    const { a, b, redis } = two;
    const { client, stream, sessionId } = await two.open({ client: a, stream: b });
    await redis.flush();
    await expect
      .poll(() => redis.content().then((all) => Object.keys(all).join()), { timeout: 20_000 })
      .toContain(sessionId);
    stream.socket.terminate();
    await client.next("unresponsive");
    await comeUp(await connectNode(b, sessionId, two.node));
    await client.next("responsive");
  });
});
