// Two real gateways over one stand-in api and a real Redis: clients and nodes meet wherever they connect.

import { CERTIFICATE_HEADER } from "@holdfast/contracts/headers";
import { uuidv7 } from "@holdfast/kit/uuid";
import { describe, expect, it } from "vitest";
import { temporaryAuthority } from "../../control-plane/src/identity/authority.ts";
import { lacks } from "../../scripts/facilities.mjs";
import {
  certificateFor,
  comeUp,
  connectClient,
  dialNode,
  forwardedForm,
  gatewayCertificate,
} from "../../testkit/gateway/gateway.ts";
import { useTwoGateways } from "../../testkit/gateway/two-gateways.ts";

const without = lacks("redis");
const two = useTwoGateways();
const across = () => two.open({ client: two.a, stream: two.b });

describe.skipIf(without)("two gateways", () => {
  it("TERM-07 pass a node's stream on to the gateway of the client, unchanged in both directions", async () => {
    const { api, redis, b } = two;
    const admissions = api.admissions;
    const { client, stream, sessionId } = await across();
    expect(api.admissions).toBe(admissions + 1);
    expect(await b.metric("holdfast_gateway_held", "relayed_streams")).toBe(1);
    const output = Buffer.alloc(300_000, "relayed ");
    for (let sent = 0; sent < 10; sent += 1) stream.type(output);
    stream.type("the end of it");
    await client.until("the end of it");
    expect(client.receivedBytes()).toBe(10 * output.length + 13);
    client.type("typed at the other gateway");
    await stream.until("typed at the other gateway");
    stream.send({ type: "exit", code: 7, signal: null });
    expect(await client.next("exit")).toMatchObject({ code: 7 });
    expect(await stream.closed).toEqual({ code: 1000, reason: "exit" });
    await expect.poll(() => api.events(sessionId).at(-1)).toMatchObject({ type: "closed", exit: { code: 7 } });
    await expect.poll(() => b.metric("holdfast_gateway_held", "relayed_streams")).toBe(0);
    await expect.poll(() => redis.content()).toEqual({});
  });

  it("TERM-04 TERM-07 the owner decides about the node itself, and the node gets its reason", async () => {
    const { api, redis, node, a, b } = two;
    const { token, grant } = api.grant({ node_id: node.id });
    const client = await connectClient(a, token);
    await client.next("status");
    await expect.poll(() => redis.content().then((all) => Object.keys(all).join())).toContain(grant.session_id);
    api.onAdmit = () => ({ code: "identity_revoked", reason: "terminal_node_revoked" });
    const place = { nodeId: node.id, sessionId: grant.session_id };
    expect(await dialNode(b, place, node)).toMatchObject({ refused: { code: "identity_revoked" } });
    expect(await client.next("error")).toMatchObject({ code: "terminal_node_revoked" });
    api.onAdmit = undefined;
    const expired = await certificateFor(api.authority, node.id, new Date(Date.now() - 90_000_000));
    expect(await dialNode(b, place, expired)).toMatchObject({ refused: { code: "cert_expired" } });
  });

  it("TERM-06 a message over the limit is reported as the node's, across gateways too", async () => {
    const { client, stream } = await across();
    stream.type(Buffer.alloc(1024 * 1024 + 1));
    expect(await client.next("error")).toMatchObject({ code: "terminal_node_frame_too_large" });
    expect(await stream.closed).toMatchObject({ code: 1009 });
  });

  it("TERM-06 TERM-07 a stream that breaks is found again through either gateway, without a new client", async () => {
    const { a, b } = two;
    const { client, stream, sessionId } = await across();
    for (const through of [a, b]) {
      stream.socket.terminate();
      expect(await client.next("unresponsive")).toMatchObject({ cause: "disconnected" });
      const again = await two.reconnect(through, sessionId);
      await comeUp(again);
      await client.next("responsive");
      again.type(`through ${through.url}`);
      await client.until(`through ${through.url}`);
      stream.socket = again.socket;
    }
  });

  it("TERM-07 TERM-11 a client that attaches at the other gateway takes the terminal over with its shell", async () => {
    const { api, a, b } = two;
    const { client, stream, sessionId } = await two.open({ client: two.a, stream: two.a });
    const newer = await two.attach(b, sessionId);
    expect(await client.next("error")).toMatchObject({ code: "terminal_taken_over" });
    // The node is asked to connect again, and keeps its shell.
    expect(await stream.closed).toEqual({ code: 1012, reason: "restart" });
    expect(stream.frames.filter(({ type }) => type === "close")).toEqual([]);
    expect(api.takeovers.at(-1)).toMatchObject({ session_id: sessionId });
    const moved = await two.reconnect(a, sessionId);
    await comeUp(moved);
    await newer.next("ready");
    newer.type("from the newer client");
    await moved.until("from the newer client");
    // And back.
    const newest = await two.attach(a, sessionId);
    expect(await newer.next("error")).toMatchObject({ code: "terminal_taken_over" });
    expect(await moved.closed).toEqual({ code: 1012, reason: "restart" });
    await comeUp(await two.reconnect(b, sessionId));
    await newest.next("ready");
  });

  it("SEC-04 TERM-07 pass a stream on to the very gateway that the binding names, and to nobody else at its address", async () => {
    const { api, redis, node, a, b } = two;
    const { sessionId } = await two.open({ client: b, stream: b });
    const [[key, value] = ["", ""]] = Object.entries(await redis.content()).filter(([one]) =>
      one.endsWith(sessionId),
    );
    const gone = { ...(JSON.parse(value) as object), id: uuidv7() };
    await redis.set(key, JSON.stringify(gone));
    const admissions = api.admissions;
    const dialled = await dialNode(a, { nodeId: node.id, sessionId }, node);
    expect(dialled).toMatchObject({ refused: { status: 503, code: "terminal_relay_unavailable" } });
    expect(api.admissions).toBe(admissions);
    expect(a.logged()).toContain("another process has this address");
    await redis.set(key, JSON.stringify({ ...gone, url: "https://127.0.0.1:1" }));
    const again = await dialNode(a, { nodeId: node.id, sessionId }, node);
    expect(again).toMatchObject({ refused: { status: 503, code: "terminal_relay_unavailable" } });
    expect("refused" in again && again.refused.body).not.toContain("127.0.0.1:1");
  });

  it("TERM-10 TERM-07 count what others have towards the limits", async () => {
    const { api, node, a } = two;
    const full = { elsewhere: { of_user: 3, on_node: 3 }, limits: { per_user: 3 } };
    const client = await connectClient(a, api.grant({ node_id: node.id, ...full }).token);
    expect(await client.next("error")).toMatchObject({ code: "terminal_sessions_exhausted" });
  });

  it("TERM-06 TERM-07 report since when a node does not respond, also if another gateway noticed it", async () => {
    const { client, stream } = await across();
    stream.socket.pause();
    const { cause, since } = await client.next("unresponsive");
    expect(cause).toBe("silent");
    expect(Date.parse(since)).toBeLessThan(Date.now());
  });

  it("OPS-02 TERM-07 leave the streams that they pass on to the others when they stop", async () => {
    const { a, b } = two;
    const stopping = await two.startGateway();
    const { client, stream, sessionId } = await two.open({ client: a, stream: stopping });
    const stopped = stopping.stop();
    expect(await stream.closed).toEqual({ code: 1012, reason: "restart" });
    await stopped;
    await client.next("unresponsive");
    await comeUp(await two.reconnect(b, sessionId));
    await client.next("responsive");
  });

  it("OPS-02 TERM-07 leave their own terminals to the others when they stop, with nothing left behind", async () => {
    const { api, redis, a, b } = two;
    const stopping = await two.startGateway();
    const { client, stream, sessionId } = await two.open({ client: stopping, stream: b });
    const stopped = stopping.stop();
    expect(await client.next("error")).toMatchObject({ code: "terminal_gateway_draining", retryable: true });
    expect(await stream.closed).toEqual({ code: 1012, reason: "restart" });
    await stopped;
    expect(api.announcements.filter(({ leaving }) => leaving)).not.toEqual([]);
    expect(Object.keys(await redis.content()).join()).not.toContain(sessionId);
    const again = await two.attach(a, sessionId);
    await comeUp(await two.reconnect(b, sessionId));
    await again.next("ready");
  });

  it("SEC-04 TERM-07 nobody but a gateway passes streams on: a certificate in a header is refused and reported", async () => {
    const { api, node, a } = two;
    const { sessionId } = await across();
    const forwarded = { [CERTIFICATE_HEADER]: forwardedForm(node) };
    const place = { nodeId: node.id, sessionId };
    const impostor = await certificateFor(api.authority);
    for (const tls of [impostor, { ca: node.ca }]) {
      const answer = await dialNode(a, place, tls, forwarded);
      expect(answer).toMatchObject({ refused: { status: 403, code: "certificate_header_refused" } });
    }
    expect(a.logged()).toContain("refused a certificate in a header");
    // Also a gateway of another installation, whose CA nobody here knows.
    const foreign = await gatewayCertificate(temporaryAuthority(new Date()));
    const answer = await dialNode(a, place, { ...foreign, ca: node.ca }, forwarded);
    expect(answer).toMatchObject({ refused: { code: "certificate_header_refused" } });
  });

  it("SEC-04 TERM-07 a gateway without a node's certificate is not a node, and cannot pass on what is not here", async () => {
    const { api, node, a } = two;
    const { sessionId } = await across();
    const gateway = await gatewayCertificate(api.authority);
    const place = { nodeId: node.id, sessionId };
    expect(await dialNode(a, place, gateway)).toMatchObject({ refused: { code: "certificate_missing" } });
    const forwarded = { [CERTIFICATE_HEADER]: forwardedForm(node) };
    const other = { nodeId: node.id, sessionId: api.grant({ node_id: node.id }).grant.session_id };
    expect(await dialNode(a, other, gateway, forwarded)).toMatchObject({
      refused: { status: 503, code: "terminal_relay_unavailable" },
    });
    const stranger = { ...place, nodeId: (await certificateFor(api.authority)).id };
    expect(await dialNode(a, stranger, gateway, forwarded)).toMatchObject({ refused: { code: "node_mismatch" } });
    const expired = await gatewayCertificate(api.authority, new Date(Date.now() - 90_000_000));
    expect(await dialNode(a, place, expired, forwarded)).toMatchObject({
      refused: { status: 503, code: "terminal_relay_unavailable" },
    });
  });
});
