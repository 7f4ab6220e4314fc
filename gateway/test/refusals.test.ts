// Who is refused, at either listener, and with what response. No response and no log contains a token.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TERMINAL_PROTOCOL, TOKEN_PROTOCOL } from "@holdfast/contracts/terminal/frames";
import { uuidv7 } from "@holdfast/kit/uuid";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { temporaryAuthority } from "../../control-plane/src/identity/authority.ts";
import { probe } from "../../control-plane/src/identity/ingress-trust/probe.ts";
import {
  certificateFor,
  connectClient,
  connectNode,
  dialClient,
  dialNode,
} from "../../testkit/gateway/gateway.ts";
import { useRig } from "../../testkit/gateway/rig.ts";
import { runTask } from "../../testkit/tasks/run-task.ts";

const rig = useRig();

const refusalOf = (dialled: Awaited<ReturnType<typeof dialClient | typeof dialNode>>) => {
  if ("peer" in dialled) throw new Error("was let in");
  return dialled.refused;
};

describe("the network probe", () => {
  it("DIAG-02 learns from the gateway whether it accepts the node's certificate", async () => {
    const stranger = temporaryAuthority(new Date());
    const stateDir = mkdtempSync(join(tmpdir(), "holdfast-probe-"));
    onTestFinished(() => rmSync(stateDir, { recursive: true }));
    writeFileSync(join(stateDir, "trust.pem"), rig.node.ca.join("\n"));
    const mtlsOf = async ({ key, cert }: { key: string; cert: string }) => {
      writeFileSync(join(stateDir, "identity.pem"), `${key}\n${cert}`);
      const endpoints = { node_terminal: rig.gateway.nodeUrl };
      const profile = { name: "test", version: 1, endpoints, resolve: {}, ca_sha256: [] };
      const { result } = await runTask("diag.network_probe", {}, { host: { stateDir, profile } });
      const [endpoint] = (result as { endpoints: { hops: unknown[] }[] }).endpoints;
      return endpoint?.hops.at(-1);
    };
    const refused = (code: string) => ({
      ...{ hop: "mtls", ok: false, code: "mtls_refused" },
      detail: expect.stringContaining(`401 ${code}`),
    });
    const twoDaysAgo = new Date(Date.now() - 48 * 3_600_000);
    expect(await mtlsOf(rig.node)).toMatchObject({ hop: "mtls", ok: true });
    expect(await mtlsOf(await certificateFor(stranger, rig.node.id))).toMatchObject(
      refused("certificate_untrusted"),
    );
    expect(await mtlsOf(await certificateFor(rig.api.authority, rig.node.id, twoDaysAgo))).toMatchObject(
      refused("cert_expired"),
    );
  });
});

describe("a canary certificate", () => {
  it("ID-11 is answered with what arrived, and opens no stream", async () => {
    const { authority } = rig.api;
    const way = { url: rig.gateway.nodeUrl, address: new URL(rig.gateway.nodeUrl).hostname };
    const stranger = temporaryAuthority(new Date());
    const sent = (by: typeof authority) => probe(way, { authority, canary: by.issueCanary(uuidv7(), new Date()) });
    expect(await sent(authority)).toEqual({ state: "accepted", ingress: null });
    expect(await sent(stranger)).toMatchObject({
      state: "rejected",
      why: expect.stringContaining("does not know the CA"),
    });
    const canary = authority.issueCanary(uuidv7(), new Date());
    const place = { nodeId: rig.node.id, sessionId: uuidv7() };
    const dialled = await dialNode(rig.gateway, place, { ...canary, ca: rig.node.ca });
    expect(refusalOf(dialled)).toMatchObject({ status: 401, code: "certificate_unusable" });
  });
});

describe("the public listener", () => {
  it.for<[string, string[], number, string]>([
    ["no token", [TERMINAL_PROTOCOL], 401, "unauthenticated"],
    ["half a token", [TERMINAL_PROTOCOL, `${TOKEN_PROTOCOL}hfp_short`], 400, "invalid_request"],
    [
      "a token of another kind",
      [TERMINAL_PROTOCOL, `${TOKEN_PROTOCOL}hft_${"a".repeat(43)}`],
      400,
      "invalid_request",
    ],
    [
      "two tokens",
      [TERMINAL_PROTOCOL, ...["a", "b"].map((c) => `${TOKEN_PROTOCOL}hfp_${c.repeat(43)}`)],
      400,
      "invalid_request",
    ],
    ["another protocol", [`${TOKEN_PROTOCOL}hfp_${"a".repeat(43)}`], 400, "invalid_request"],
  ])("TERM-02 refuses %s with an answer", async ([, protocols, status, code]) => {
    const refused = refusalOf(await dialClient(rig.gateway, "", { protocols }));
    expect(refused).toMatchObject({ status, code });
    expect(JSON.stringify(refused)).not.toMatch(/hf[pt]_/);
  });

  it("TERM-02 refuses another site's page, and counts it", async () => {
    const { token } = rig.api.grant();
    const before = await rig.gateway.metric("holdfast_gateway_upgrades_refused_total", 'code="origin_refused"');
    const refused = refusalOf(await dialClient(rig.gateway, token, { origin: "https://evil.example" }));
    expect(refused).toMatchObject({ status: 403, code: "origin_refused" });
    expect(await rig.gateway.metric("holdfast_gateway_upgrades_refused_total", 'code="origin_refused"')).toBe(
      before + 1,
    );
    // It was not used up.
    const client = await connectClient(rig.gateway, token);
    expect(await client.next("status")).toMatchObject({ step: "token_ready" });
  });

  it("TERM-02 refuses another Host", async () => {
    const { token } = rig.api.grant();
    const refused = refusalOf(await dialClient(rig.gateway, token, { headers: { host: "evil.example" } }));
    expect(refused).toMatchObject({ status: 421, code: "host_refused" });
  });

  it("TERM-02 needs no Origin from the command line", async () => {
    const client = await connectClient(rig.gateway, rig.api.grant().token, { origin: "" });
    expect(await client.next("status")).toMatchObject({ step: "token_ready" });
  });

  it("TERM-02 answers an upgrade that is none", async () => {
    const outgoing = request(`${rig.gateway.url}/v1/terminal`, {
      headers: {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "7",
        "sec-websocket-key": "x",
        "sec-websocket-protocol": `${TERMINAL_PROTOCOL}, ${TOKEN_PROTOCOL}${rig.api.grant().token}`,
      },
    });
    const status = new Promise((resolve) => outgoing.once("response", ({ statusCode }) => resolve(statusCode)));
    outgoing.end();
    expect(await status).toBe(400);
    expect((await fetch(`${rig.gateway.url}/v1/terminal`)).status).toBe(400);
  });

  it("TERM-01 a token works once, also when two race for it", async () => {
    const { token } = rig.api.grant();
    const both = await Promise.all([connectClient(rig.gateway, token), connectClient(rig.gateway, token)]);
    const received = await Promise.all(
      both.map(async (client) => {
        const status = await client.next("status");
        return status.step === "failed" ? client.next("error") : status;
      }),
    );
    expect(received.map(({ type }) => type).sort()).toEqual(["error", "status"]);
    expect(received.find(({ type }) => type === "error")).toMatchObject({
      code: "terminal_token_refused",
      hop: "browser_terminal_ws",
    });
    const third = await connectClient(rig.gateway, token);
    expect(await third.next("error")).toMatchObject({ code: "terminal_token_refused" });
    expect(await third.closed).toEqual({ code: 4000, reason: "terminal_token_refused" });
  });

  it("TERM-02 selects the one protocol and tells no token, not in an answer nor in the log", async () => {
    const { token } = rig.api.grant();
    const client = await connectClient(rig.gateway, token);
    expect(client.socket.protocol).toBe(TERMINAL_PROTOCOL);
    await client.next("status");
    expect(rig.gateway.logged()).not.toContain(token);
    expect(rig.gateway.logged()).not.toContain(TOKEN_PROTOCOL);
  });

  it("TERM-09 lets the api's page ask whether it is there", async () => {
    const answer = await fetch(`${rig.gateway.url}/healthz`);
    expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([200, "*"]);
    const ready = await fetch(`${rig.gateway.url}/readyz`);
    expect([ready.status, ready.headers.get("access-control-allow-origin")]).toEqual([200, null]);
  });
});

describe("the node-facing listener", () => {
  const place = () => {
    const { grant } = rig.api.grant({ node_id: rig.node.id });
    return { nodeId: rig.node.id, sessionId: grant.session_id };
  };

  it("TERM-04 tells a machine without a certificate", async () => {
    const refused = refusalOf(await dialNode(rig.gateway, place(), { ca: rig.node.ca }));
    expect(refused).toMatchObject({ status: 401, code: "certificate_missing" });
  });

  it("TERM-04 an issuer that is not ours is only counted: the terminal waits on", async () => {
    const at = place();
    const { token } = rig.api.grant({ session_id: at.sessionId, node_id: rig.node.id });
    const client = await connectClient(rig.gateway, token);
    const stranger = await certificateFor(temporaryAuthority(new Date()), rig.node.id);
    const refused = refusalOf(await dialNode(rig.gateway, at, { ...stranger, ca: rig.node.ca }));
    expect(refused).toMatchObject({ status: 401, code: "certificate_untrusted" });
    const stream = await connectNode(rig.gateway, at.sessionId, rig.node);
    stream.send({ type: "hello", offset: 0, end: 0 });
    await stream.next("attach");
    expect(client.frames.filter(({ type }) => type === "error")).toEqual([]);
  });

  it("TERM-04 a certificate that has ended fails the terminal it was shown for", async () => {
    const at = place();
    const { token } = rig.api.grant({ session_id: at.sessionId, node_id: rig.node.id });
    const client = await connectClient(rig.gateway, token);
    const expired = await certificateFor(rig.api.authority, rig.node.id, new Date(Date.now() - 25 * 3_600_000));
    expect(refusalOf(await dialNode(rig.gateway, at, expired))).toMatchObject({
      status: 401,
      code: "cert_expired",
    });
    expect(await client.next("error")).toMatchObject({ code: "terminal_node_stream_mtls_failed" });
  });

  it("TERM-04 a stream ends with the certificate it came with: the agent comes back with its newer one", async () => {
    const at = place();
    const dayAgo = Date.now() - 24 * 3_600_000;
    const ending = await certificateFor(rig.api.authority, rig.node.id, new Date(dayAgo + 60_000));
    // However long it takes to connect, by the gateway's clock there is a second left.
    vi.useFakeTimers({ toFake: ["Date"], now: dayAgo + 24 * 3_600_000 + 58_000 });
    onTestFinished(() => void vi.useRealTimers());
    const stream = await connectNode(rig.gateway, at.sessionId, ending);
    expect(await stream.closed).toEqual({ code: 4401, reason: "cert_expired" });
    const back = await connectNode(rig.gateway, at.sessionId, rig.node);
    expect(back.socket.readyState).toBe(back.socket.OPEN);
  });

  it("TERM-04 one node cannot bring, or end, another's terminal", async () => {
    const at = place();
    const { token } = rig.api.grant({ session_id: at.sessionId, node_id: rig.node.id });
    const client = await connectClient(rig.gateway, token);
    const other = await certificateFor(rig.api.authority);
    expect(refusalOf(await dialNode(rig.gateway, at, other))).toMatchObject({
      status: 403,
      code: "node_mismatch",
    });
    const own = { nodeId: other.id, sessionId: at.sessionId };
    expect(refusalOf(await dialNode(rig.gateway, own, other))).toMatchObject({ code: "terminal_session_unknown" });
    const stream = await connectNode(rig.gateway, at.sessionId, rig.node);
    stream.send({ type: "hello", offset: 0, end: 0 });
    await stream.next("attach");
    expect(client.frames.filter(({ type }) => type === "error")).toEqual([]);
  });

  it("TERM-04 a certificate of a service is not one of a node", async () => {
    const { key, cert } = rig.api.authority.issueToServer(["127.0.0.1"], new Date());
    const refused = refusalOf(await dialNode(rig.gateway, place(), { key, cert, ca: rig.node.ca }));
    expect(refused).toMatchObject({ status: 401, code: "certificate_unusable" });
  });

  it("TERM-04 wants to know which process speaks, and answers to its own names only", async () => {
    const unnamed = await dialNode(rig.gateway, place(), rig.node, { "x-holdfast-instance": "?" });
    expect(refusalOf(unnamed)).toMatchObject({ status: 400, code: "invalid_request" });
    const elsewhere = await dialNode(rig.gateway, place(), rig.node, { host: "evil.example" });
    expect(refusalOf(elsewhere)).toMatchObject({ status: 421, code: "host_refused" });
    const unknown = await dialNode(rig.gateway, { nodeId: rig.node.id, sessionId: uuidv7() }, rig.node);
    expect(refusalOf(unknown)).toMatchObject({ status: 409, code: "terminal_session_unknown" });
  });
});
