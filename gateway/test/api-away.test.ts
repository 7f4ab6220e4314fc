// The gateway and the api that it depends on: it comes without it, goes on without it, and leaves in order.

import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ORIGIN, SERVICE_TOKEN, type StandInApi, startStandInApi } from "../../testkit/gateway/api.ts";
import {
  certificateFor,
  connectClient,
  openTerminal,
  startTestGateway,
  type TestGateway,
} from "../../testkit/gateway/gateway.ts";

const opened = async (api: StandInApi, gateway: TestGateway) => {
  const node = await certificateFor(api.authority);
  return { node, ...(await openTerminal({ api, gateway, node })) };
};

const readiness = async (gateway: TestGateway) => (await fetch(`${gateway.url}/readyz`)).status;

describe("a gateway and its api", () => {
  it("TERM-02 is ready when it is enrolled, announced and can be spoken to", async () => {
    const api = await startStandInApi();
    const gateway = await startTestGateway(api);
    expect(await readiness(gateway)).toBe(200);
    expect(api.announcements[0]).toMatchObject({
      terminal_url: gateway.terminalUrl,
      node_url: gateway.nodeUrl,
      sessions: 0,
    });
  });

  it("SEC-04 does not believe an api that does not know the token", async () => {
    const api = await startStandInApi();
    Object.assign(api, { validityMs: 3_600_000, provesWith: `${SERVICE_TOKEN}!` });
    const starting = startTestGateway(api);
    await expect.poll(() => api.enrollments).toBeGreaterThan(2);
    expect(api.announcements).toEqual([]);
    api.provesWith = SERVICE_TOKEN;
    expect(await readiness(await starting)).toBe(200);
  });

  it("TERM-02 says without a service token why there are no terminals", async () => {
    const gateway = await startTestGateway({ url: "https://127.0.0.1:1" }, { HOLDFAST_SERVICE_TOKEN: "" });
    expect(await readiness(gateway)).toBe(503);
    const answer = await fetch(gateway.terminalUrl.replace("ws", "http"));
    expect(await answer.json()).toMatchObject({ code: "terminal_gateway_missing" });
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
  });

  it("TERM-04 gets a new certificate at half of its lifetime, and terminals go on", async () => {
    const api = await startStandInApi();
    const gateway = await startTestGateway(api);
    api.validityMs = 1_000;
    const again = await startTestGateway(api);
    const { client, stream } = await opened(api, again);
    const enrolled = api.enrollments;
    await expect.poll(() => api.enrollments).toBeGreaterThan(enrolled + 1);
    stream.type("still there");
    await client.until("still there");
    const other = await opened(api, again);
    expect(other.client.frames.at(-1)).toMatchObject({ type: "ready" });
    expect(await readiness(gateway)).toBe(200);
  });

  it("TERM-02 keeps what is open while the api is away, and tells those who come", async () => {
    const api = await startStandInApi();
    const gateway = await startTestGateway(api);
    const { client, stream, sessionId } = await opened(api, gateway);
    await expect.poll(() => api.events(sessionId).length).toBe(4);
    const { token } = api.grant();
    await api.goAway();
    const late = await connectClient(gateway, token, { origin: ORIGIN });
    const failure = await late.next("error");
    expect(failure).toMatchObject({ code: "terminal_token_unverified", hop: "browser_terminal_ws" });
    expect(failure.action).toContain("gateway's log");
    expect(gateway.logged()).toContain(failure.correlation_id);
    stream.type("goes on");
    await client.until("goes on");
    stream.send({ type: "exit", code: 0, signal: null });
    await client.next("exit");
    await api.comeBack();
    // Events from the meantime are reported, in order.
    await expect.poll(() => api.events(sessionId).at(-1)).toMatchObject({ type: "closed", reason: "exit" });
    await expect.poll(() => readiness(gateway)).toBe(200);
    // Also of the client that it could not let in, by the hash of its token.
    await expect
      .poll(() => api.unclaimed)
      .toMatchObject([
        {
          token_hash: createHash("sha256").update(token).digest("base64url"),
          failed: { code: failure.code, correlation_id: failure.correlation_id },
        },
      ]);
    expect(`${JSON.stringify(api.unclaimed)}${gateway.logged()}`).not.toContain(token);
  });

  it("TERM-04 asks again about every stream after news may have been missed", async () => {
    const api = await startStandInApi();
    const gateway = await startTestGateway(api);
    const stays = await opened(api, gateway);
    const ends = await opened(api, gateway);
    await expect.poll(() => api.following()).toBe(1);
    await api.goAway();
    api.onAdmit = ({ node_id }) =>
      node_id === ends.node.id ? { code: "identity_revoked", reason: "terminal_node_revoked" } : undefined;
    await api.comeBack();
    expect(await ends.client.next("error")).toMatchObject({ code: "terminal_node_revoked", owner: "node" });
    stays.stream.type("untouched");
    await stays.client.until("untouched");
  });

  it("TERM-05 asks an api that comes back what became of the task of a terminal that opens", async () => {
    const api = await startStandInApi();
    const gateway = await startTestGateway(api);
    const awaited = Promise.withResolvers<void>();
    api.onTask = () => {
      awaited.resolve();
      return new Promise(() => undefined);
    };
    const client = await connectClient(gateway, api.grant().token);
    await awaited.promise;
    await api.goAway();
    const failure = { code: "terminal_env_profile_drift", message: "The node has version 3 of its profile." };
    api.onTask = async () => ({ failure });
    await api.comeBack();
    expect(await client.next("error")).toMatchObject(failure);
  });

  it("TERM-11 tells clients that it stops, and sends shells to the next gateway", async () => {
    const api = await startStandInApi();
    const gateway = await startTestGateway(api);
    const { client, stream, sessionId } = await opened(api, gateway);
    const { token } = api.grant();
    const opening = await connectClient(gateway, token);
    await opening.next("status");
    const stopping = gateway.stop();
    expect(await client.next("error")).toMatchObject({ code: "terminal_gateway_draining", retryable: true });
    expect(await opening.next("error")).toMatchObject({ code: "terminal_gateway_draining" });
    expect(await stream.closed).toEqual({ code: 1012, reason: "restart" });
    expect(stream.frames.filter(({ type }) => type === "close")).toEqual([]);
    await stopping;
    expect(api.events(sessionId).at(-1)).toMatchObject({ type: "detached" });
  });
});
