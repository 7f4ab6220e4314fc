// A terminal from its token to its end, through real sockets of both sides.

import { describe, expect, it } from "vitest";
import type { StandInApi } from "../../testkit/gateway/api.ts";
import {
  certificateFor,
  comeUp,
  connectClient,
  connectNode,
  dialClient,
  type TestClient,
} from "../../testkit/gateway/gateway.ts";
import { useRig } from "../../testkit/gateway/rig.ts";

const rig = useRig();

const attachToken = (sessionId: string, more: object = {}) => rig.attachTo(sessionId, more).token;
const stepsOf = ({ frames }: TestClient) =>
  frames.flatMap((frame) => (frame.type === "status" ? [frame.step] : []));
const eventTypes = (sessionId: string) => rig.api.events(sessionId).map(({ type }) => type);

describe("opening", () => {
  it("TERM-08 tells each step as it happens, then ready", async () => {
    const requests: unknown[] = [];
    rig.api.onTask = async (awaiting) => {
      requests.push(awaiting);
      await awaiting.ended;
      return { failure: null };
    };
    const { token, grant } = rig.api.grant({ node_id: rig.node.id });
    const client = await connectClient(rig.gateway, token);
    client.send({ type: "resize", cols: 132, rows: 43 });
    const stream = await connectNode(rig.gateway, grant.session_id, rig.node);
    const attach = await comeUp(stream, { offset: 0, end: 7, replay: 7 });
    expect(await client.next("ready")).toEqual({
      type: "ready",
      session_id: grant.session_id,
      offset: 0,
      window: 128 * 1024,
      replay: 7,
    });
    expect(attach).toMatchObject({ attachment: 1, from: null, cols: 132, rows: 43 });
    expect(client.frames.map((frame) => (frame.type === "status" ? frame.step : frame.type))).toEqual([
      "token_ready",
      "browser_ws_ready",
      "terminal_open_sent",
      "node_stream_connected",
      "pty_ready",
      "ready",
    ]);
    for (const frame of client.frames)
      if (frame.type === "status") expect(frame.correlation_id).toBe(grant.correlation_id);
    await expect.poll(() => eventTypes(grant.session_id)).toEqual(["step", "step", "step", "attached"]);
    expect(requests).toHaveLength(1);
  });

  it("TERM-08 reports that the node was asked when the api has confirmed it, not before", async () => {
    const { onOpen } = rig.api;
    const made = Promise.withResolvers<void>();
    const requested = Promise.withResolvers<void>();
    rig.api.onOpen = async (opening) => {
      requested.resolve();
      await made.promise;
      return onOpen(opening);
    };
    const { token } = rig.api.grant({ node_id: rig.node.id });
    const client = await connectClient(rig.gateway, token);
    await requested.promise;
    client.send({ type: "ping" });
    await client.next("pong");
    expect(stepsOf(client)).toEqual(["token_ready", "browser_ws_ready"]);
    made.resolve();
    await expect.poll(() => stepsOf(client)).toContain("terminal_open_sent");
    rig.api.onOpen = onOpen;
  });

  it("TERM-10 passes bytes both ways unchanged, and sizes down", async () => {
    const { client, stream } = await rig.open();
    const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    stream.type(all);
    stream.type("naïve 😀");
    await client.until("😀");
    expect(client.received()).toEqual(Buffer.concat([all, Buffer.from("naïve 😀")]));
    client.type("ls\n");
    await stream.until("ls\n");
    client.send({ type: "resize", cols: 100, rows: 30 });
    expect(await stream.next("resize")).toEqual({ type: "resize", cols: 100, rows: 30 });
    client.send({ type: "ack", bytes: 200 });
    expect(await stream.next("ack")).toEqual({ type: "ack", bytes: 200 });
    client.send({ type: "ping" });
    await client.next("pong");
  });

  it("TERM-10 reports input that comes before the shell, from a client that does not keep it", async () => {
    const { token } = rig.api.grant({ node_id: rig.node.id });
    const client = await connectClient(rig.gateway, token);
    client.type("early");
    const { code, message } = await client.next("error");
    expect(code).toBe("terminal_input_overflow");
    expect(message).toMatch(/^5 bytes were typed while the shell could not be reached/);
  });

  it("TERM-10 tells how the shell ended, and the api too", async () => {
    const { client, stream, sessionId } = await rig.open();
    stream.type("bye");
    stream.send({ type: "exit", code: 3, signal: null });
    expect(await client.next("exit")).toEqual({ type: "exit", code: 3, signal: null });
    expect((await client.closed).code).toBe(1000);
    expect((await stream.closed).code).toBe(1000);
    await expect
      .poll(() => rig.api.events(sessionId).at(-1))
      .toMatchObject({
        type: "closed",
        reason: "exit",
        exit: { code: 3, signal: null },
        bytes_in: 0,
        bytes_out: 3,
      });
  });
});

describe("an opening that fails", () => {
  const failed = async (changes: Parameters<StandInApi["grant"]>[0] = {}) => {
    const { token, grant } = rig.api.grant({ node_id: rig.node.id, ...changes });
    const client = await connectClient(rig.gateway, token);
    return { client, grant };
  };

  it("TERM-05 TERM-08 says within its deadline what is known when the api does not answer", async () => {
    const { onOpen } = rig.api;
    rig.api.onOpen = () => new Promise(() => undefined);
    const unconfirmed = await failed({ deadline_seconds: 0.05 });
    const { client, grant } = unconfirmed;
    const code = "terminal_open_unconfirmed";
    const failure = await client.next("error");
    expect(failure).toMatchObject({ code, hop: "terminal_open_task", owner: "control plane", retryable: true });
    expect(failure.correlation_id).toBe(grant.correlation_id);
    expect(stepsOf(client)).toEqual(["token_ready", "browser_ws_ready", "failed"]);
    expect(await client.closed).toEqual({ code: 4000, reason: code });
    await expect
      .poll(() => rig.api.events(grant.session_id).at(-1))
      .toMatchObject({ type: "failed", code, ended: true, correlation_id: grant.correlation_id });
    rig.api.onOpen = onOpen;
    rig.api.onTask = () => new Promise(() => undefined);
    const confirmed = await failed({ deadline_seconds: 0.5 });
    expect((await confirmed.client.next("error")).message).toContain("not known whether the node took it");
    expect(stepsOf(confirmed.client)).toEqual(["token_ready", "browser_ws_ready", "terminal_open_sent", "failed"]);
  });

  it("TERM-12 tells a success without a stream apart from it", async () => {
    rig.api.onTask = async () => ({ failure: null });
    const { client } = await failed();
    expect(await client.next("error")).toMatchObject({ code: "terminal_open_without_stream" });
  });

  it("TERM-09 passes on what the api found out", async () => {
    const failure = { code: "terminal_env_profile_drift", message: "The node has version 3 of its profile." };
    rig.api.onTask = async () => ({ failure });
    const { client } = await failed();
    expect(await client.next("error")).toMatchObject(failure);
  });

  it("TERM-06 passes on what the node says, and stops waiting for the task", async () => {
    const released = Promise.withResolvers<void>();
    rig.api.onTask = async ({ ended }) => {
      await ended;
      released.resolve();
      return { failure: null };
    };
    const { client, grant } = await failed();
    const stream = await connectNode(rig.gateway, grant.session_id, rig.node);
    stream.send({ type: "error", code: "terminal_pty_failed", message: "There is no user alice." });
    expect(await client.next("error")).toMatchObject({
      code: "terminal_pty_failed",
      message: "There is no user alice.",
    });
    await released.promise;
  });

  it("TERM-04 fails at once when the node's own certificate is not accepted", async () => {
    rig.api.onOpen = () => new Promise(() => undefined);
    const { client, grant } = await failed();
    rig.api.onAdmit = ({ session_id }) =>
      session_id === grant.session_id ? { code: "identity_revoked" } : undefined;
    await expect(connectNode(rig.gateway, grant.session_id, rig.node)).rejects.toThrow("identity_revoked");
    expect(await client.next("error")).toMatchObject({ code: "terminal_node_stream_mtls_failed" });
    rig.api.onAdmit = undefined;
  });
});

describe("a client that comes and goes", () => {
  it("TERM-11 leaves its shell, and finds it again from where it was", async () => {
    const { client, stream, sessionId } = await rig.open();
    stream.type("hello");
    await client.until("hello");
    client.socket.terminate();
    await stream.next("detach");
    const again = await connectClient(rig.gateway, attachToken(sessionId, { offset: 5 }));
    const attach = await stream.next("attach");
    expect(attach).toMatchObject({ attachment: 2, from: 5 });
    stream.type("of nobody any more");
    stream.send({ type: "attached", attachment: 2, offset: 5, replay: 0 });
    stream.type("world");
    expect(await again.next("ready")).toMatchObject({ offset: 5, session_id: sessionId });
    await again.until("world");
    expect(again.received().toString()).toBe("world");
    await expect.poll(() => eventTypes(sessionId).slice(-3)).toEqual(["attached", "detached", "attached"]);
  });

  it("TERM-10 the newest wins, and the older is notified", async () => {
    const { client, stream, sessionId } = await rig.open();
    const newer = await connectClient(rig.gateway, attachToken(sessionId));
    expect(await client.next("error")).toMatchObject({ code: "terminal_taken_over", retryable: true });
    const attach = await stream.next("attach");
    stream.send({ type: "attached", attachment: attach.attachment, offset: 0, replay: 0 });
    await newer.next("ready");
    client.socket.terminate();
    stream.type("for the newer");
    await newer.until("for the newer");
  });

  it("TERM-11 a stream that breaks and comes back loses nothing, and credit goes on", async () => {
    const { client, stream, sessionId } = await rig.open();
    stream.type("12345");
    await client.until("12345");
    stream.socket.terminate();
    expect(await client.next("unresponsive")).toMatchObject({ cause: "disconnected" });
    const back = await connectNode(rig.gateway, sessionId, rig.node);
    const attach = await comeUp(back, { offset: 0, end: 5 });
    expect(attach.from).toBe(5);
    await client.next("responsive");
    back.type("678");
    await client.until("12345678");
    client.send({ type: "ack", bytes: 8 });
    expect(await back.next("ack")).toEqual({ type: "ack", bytes: 3 });
    expect(client.frames.filter(({ type }) => type === "ready")).toHaveLength(1);
  });

  it("TERM-11 and after a gap it learns where output continues", async () => {
    const { client, stream, sessionId } = await rig.open();
    stream.type("12345");
    await client.until("12345");
    stream.socket.terminate();
    const back = await connectNode(rig.gateway, sessionId, rig.node);
    back.send({ type: "hello", offset: 1000, end: 2000 });
    const { attachment } = await back.next("attach");
    back.send({ type: "attached", attachment, offset: 1000, replay: 1000 });
    expect(await client.next("ready")).toMatchObject({ offset: 1000, replay: 1000 });
  });

  it("TERM-10 a node or a client that stops answering is cut off, and the client of such a node is informed", async () => {
    const ofSilentNode = await rig.open();
    const ofSilentClient = await rig.open();
    const since = Date.now();
    ofSilentNode.stream.socket.pause();
    ofSilentClient.client.socket.pause();
    const { cause, since: silentSince } = await ofSilentNode.client.next("unresponsive");
    expect(cause).toBe("silent");
    expect(Date.parse(silentSince)).toBeGreaterThanOrEqual(since - 1);
    await ofSilentClient.stream.next("detach");
    const back = await connectNode(rig.gateway, ofSilentNode.sessionId, rig.node);
    await comeUp(back);
    await ofSilentNode.client.next("responsive");
    expect(ofSilentNode.client.socket.readyState).toBe(ofSilentNode.client.socket.OPEN);
    expect(ofSilentClient.stream.socket.readyState).toBe(ofSilentClient.stream.socket.OPEN);
  });

  it("TERM-11 a shell that is not brought back in time is lost to whoever asks for it, not for good", async () => {
    const { client: first, stream, sessionId } = await rig.open({ deadline_seconds: 5 });
    stream.socket.terminate();
    await first.next("unresponsive");
    const client = await connectClient(rig.gateway, attachToken(sessionId));
    expect(await client.next("error")).toMatchObject({ code: "terminal_stream_lost", retryable: true });
    const back = await connectNode(rig.gateway, sessionId, rig.node);
    back.send({ type: "hello", offset: 0, end: 0 });
    const again = await connectClient(rig.gateway, attachToken(sessionId));
    const { attachment } = await back.next("attach");
    back.send({ type: "attached", attachment, offset: 0, replay: 0 });
    expect(await again.next("ready")).toMatchObject({ session_id: sessionId });
  });

  it("TERM-11 after a restart of the gateway the node brings the shell, and the api says whose it is", async () => {
    const { grant } = rig.api.grant({ node_id: rig.node.id, purpose: "attach" });
    const stream = await connectNode(rig.gateway, grant.session_id, rig.node);
    stream.send({ type: "hello", offset: 0, end: 0 });
    const client = await connectClient(rig.gateway, attachToken(grant.session_id));
    const { attachment } = await stream.next("attach");
    stream.send({ type: "attached", attachment, offset: 0, replay: 0 });
    expect(await client.next("ready")).toMatchObject({ session_id: grant.session_id });
  });
});

describe("input of a client that keeps it", () => {
  const writer = "00112233445566778899aabbccddeeff";
  const connected = async (input: { input?: number }) => {
    const { token, grant } = rig.api.grant({ node_id: rig.node.id });
    const client = await connectClient(rig.gateway, token, { writer });
    client.type("before there was a shell");
    const stream = await connectNode(rig.gateway, grant.session_id, rig.node);
    expect(await comeUp(stream, input)).toMatchObject({ attachment: 1, writer });
    const ready = await client.next("ready");
    return { client, stream, ready, sessionId: grant.session_id };
  };

  it("TERM-10 is passed on from where the node wants it, after the client has begun there", async () => {
    const { client, stream, ready } = await connected({ input: 7 });
    expect(ready.input).toEqual({ attachment: 1, from: 7 });
    client.type("of an earlier attachment");
    client.send({ type: "input", attachment: 1, from: 7 });
    client.type("ls");
    await stream.until("ls");
    expect(stream.received().toString()).toBe("ls");
    stream.send({ type: "ack", bytes: 9 });
    expect(await client.next("ack")).toEqual({ type: "ack", bytes: 9 });
  });

  it("TERM-10 begins anew when the node's stream broke under the client", async () => {
    const { client, stream, sessionId } = await connected({ input: 0 });
    client.send({ type: "input", attachment: 1, from: 0 });
    client.type("0123");
    await stream.until("0123");
    stream.socket.terminate();
    await client.next("unresponsive");
    const back = await connectNode(rig.gateway, sessionId, rig.node);
    // The shell is not attached yet.
    client.type("45");
    client.send({ type: "ping" });
    await client.next("pong");
    await comeUp(back, { input: 2 });
    expect(await client.next("input")).toEqual({ type: "input", attachment: 2, from: 2 });
    // What answers the attachment before, or begins elsewhere, opens nothing.
    client.send({ type: "input", attachment: 1, from: 2 });
    client.type("lost");
    client.send({ type: "input", attachment: 2, from: 3 });
    client.type("lost");
    client.send({ type: "input", attachment: 2, from: 2 });
    client.type("2345");
    await back.until("2345");
    expect(back.received().toString()).toBe("2345");
  });

  it("TERM-10 is acknowledged by the gateway where the node does not count", async () => {
    const { client, stream, ready, sessionId } = await connected({});
    expect(ready.input).toEqual({ attachment: 1, from: null });
    client.send({ type: "input", attachment: 1, from: 100 });
    client.type("ls");
    expect(await client.next("ack")).toEqual({ type: "ack", bytes: 102 });
    stream.socket.terminate();
    const back = await connectNode(rig.gateway, sessionId, rig.node);
    await comeUp(back);
    expect(await client.next("input")).toEqual({ type: "input", attachment: 2, from: 102 });
  });

  it("TERM-02 names its writer in the one form there is", async () => {
    const refused = await dialClient(rig.gateway, rig.api.grant({ node_id: rig.node.id }).token, { writer: "me" });
    expect(refused).toMatchObject({ refused: { status: 400, code: "invalid_request" } });
  });
});

describe("the times of a terminal", () => {
  it.for<[string, object, string]>([
    ["TERM-10 idle", { idle_seconds: 0.05 }, "terminal_idle"],
    ["TERM-10 longest", { longest_seconds: 5 }, "terminal_time_over"],
  ])("%s", async ([, limits, code]) => {
    const { client, stream, sessionId } = await rig.open({ limits });
    expect(await client.next("error")).toMatchObject({ code });
    expect(await stream.next("close")).toEqual({ type: "close", reason: code });
    await expect.poll(() => rig.api.events(sessionId).at(-1)).toMatchObject({ type: "closed", reason: code });
  });

  it("TERM-10 a shell without a client ends after a while", async () => {
    const { client, stream, sessionId } = await rig.open({ limits: { detached_seconds: 0.05 } });
    client.socket.terminate();
    expect(await stream.next("close")).toEqual({ type: "close", reason: "detached" });
    await expect
      .poll(() => rig.api.events(sessionId).at(-1))
      .toMatchObject({ type: "closed", reason: "detached" });
  });

  it("TERM-10 as many as one person or one node may have", async () => {
    const own = { user_key: "user:bob", node_id: rig.node.id };
    await rig.open(own);
    const { token, grant } = rig.api.grant({ ...own, limits: { per_user: 1 } });
    const client = await connectClient(rig.gateway, token);
    expect(await client.next("error")).toMatchObject({
      code: "terminal_sessions_exhausted",
      message: "1 of 1 terminals of yours are open, detached ones included.",
      action: expect.stringContaining("My terminals"),
    });
    await expect
      .poll(() => rig.api.events(grant.session_id).at(-1))
      .toMatchObject({ type: "failed", ended: true });
    const other = await connectClient(
      rig.gateway,
      rig.api.grant({ node_id: rig.node.id, limits: { per_node: 1 } }).token,
    );
    expect(await other.next("error")).toMatchObject({ code: "terminal_node_full", owner: "operator" });
  });
});

describe("what the api says", () => {
  it("TERM-10 ends a terminal whose allocation was released", async () => {
    const { client, stream, sessionId } = await rig.open();
    await expect.poll(() => rig.api.following()).toBe(1);
    rig.api.publish({ type: "close_terminal", session_id: sessionId, code: "terminal_allocation_released" });
    expect(await client.next("error")).toMatchObject({ code: "terminal_allocation_released", retryable: false });
    expect((await client.closed).code).toBe(4001);
    await stream.next("close");
    // A node that has not heard of it cannot bring it back.
    await expect(connectNode(rig.gateway, sessionId, rig.node)).rejects.toThrow("terminal_session_unknown");
  });

  it.for([
    ["the reason of the api", { reason: "terminal_node_revoked" }, "terminal_node_revoked"],
    ["no reason", {}, "terminal_node_stream_mtls_failed"],
  ] as const)(
    "TERM-04 cuts the streams of a revoked node, and lets none in again, with %s",
    async ([, why, code]) => {
      const other = await certificateFor(rig.api.authority);
      const { client, stream, sessionId } = await (async () => {
        const { token, grant } = rig.api.grant({ node_id: other.id });
        const client = await connectClient(rig.gateway, token);
        const stream = await connectNode(rig.gateway, grant.session_id, other);
        await comeUp(stream);
        await client.next("ready");
        return { client, stream, sessionId: grant.session_id };
      })();
      await expect.poll(() => rig.api.following()).toBe(1);
      rig.api.onAdmit = ({ node_id }) => (node_id === other.id ? { code: "identity_revoked", ...why } : undefined);
      rig.api.publish({ type: "node_revoked", node_id: other.id });
      expect((await stream.closed).code).toBe(1006);
      await expect(connectNode(rig.gateway, sessionId, other)).rejects.toThrow("identity_revoked");
      expect(await client.next("error")).toMatchObject({ code });
      rig.api.onAdmit = undefined;
    },
  );
});
