// What ends a client's connection while the shell continues or exits: the client learns the reason, and the api receives the
// same reason, with the correlation id that the client received.

import { MOST_FRAME_BYTES } from "@holdfast/contracts/terminal/frames";
import { describe, expect, it } from "vitest";
import { comeUp, connectClient, connectNode, type TestClient } from "../../testkit/gateway/gateway.ts";
import { useRig } from "../../testkit/gateway/rig.ts";

const rig = useRig();

const attachTo = (sessionId: string) => rig.attachTo(sessionId, { correlation_id: `attach-${sessionId}` });

/** The error that the client received, once the api has received the same error with the same id. */
async function failureOf(client: TestClient, sessionId: string) {
  const failure = await client.next("error");
  const failed = client.frames.find((frame) => frame.type === "status" && frame.step === "failed");
  expect(failed).toMatchObject({ correlation_id: failure.correlation_id, at: expect.any(String) });
  const reported = () =>
    rig.api
      .events(sessionId)
      .flatMap((event) =>
        event.type === "failed" || event.type === "closed"
          ? [{ code: event.type === "failed" ? event.code : event.reason, correlation_id: event.correlation_id }]
          : [],
      );
  await expect.poll(reported).toContainEqual({ code: failure.code, correlation_id: failure.correlation_id });
  return failure;
}

const tooLarge = Buffer.alloc(MOST_FRAME_BYTES + 1);

describe("a message over the limit", () => {
  it("TERM-05 of a client is answered with an error frame, and its shell goes on", async () => {
    const { client, stream, sessionId } = await rig.open();
    client.type(Buffer.alloc(MOST_FRAME_BYTES, "x"));
    await stream.until("x".repeat(1000));
    client.type(tooLarge);
    const failure = await failureOf(client, sessionId);
    expect(failure).toMatchObject({
      code: "terminal_frame_too_large",
      hop: "browser_terminal_ws",
      owner: "tenant",
    });
    expect(failure.action).toContain("1,048,576 bytes");
    expect(await client.closed).toEqual({ code: 4001, reason: "terminal_frame_too_large" });
    await stream.next("detach");
    const again = await connectClient(rig.gateway, attachTo(sessionId).token);
    const { attachment } = await stream.next("attach");
    stream.send({ type: "attached", attachment, offset: 0, replay: 0 });
    await again.next("ready");
  });

  it("TERM-05 of a client that has no shell yet is answered too", async () => {
    const { token, grant } = rig.api.grant({ node_id: rig.node.id });
    const client = await connectClient(rig.gateway, token);
    client.type(tooLarge);
    expect(await failureOf(client, grant.session_id)).toMatchObject({
      code: "terminal_frame_too_large",
      correlation_id: grant.correlation_id,
    });
  });

  it("TERM-05 of a node is reported as a failure of the node, which may open its stream again", async () => {
    const { client, stream, sessionId } = await rig.open();
    stream.type(tooLarge);
    expect(await failureOf(client, sessionId)).toMatchObject({
      code: "terminal_node_frame_too_large",
      hop: "gateway_node_stream",
      owner: "node",
    });
    expect((await stream.closed).code).toBe(1009);
    await comeBack(sessionId);
  });

  async function comeBack(sessionId: string) {
    const back = await connectNode(rig.gateway, sessionId, rig.node);
    back.send({ type: "hello", offset: 0, end: 0 });
    const again = await connectClient(rig.gateway, attachTo(sessionId).token);
    const { attachment } = await back.next("attach");
    back.send({ type: "attached", attachment, offset: 0, replay: 0 });
    await again.next("ready");
  }
});

describe("a failure after ready", () => {
  it("TERM-08 of the shell is reported with what the node says", async () => {
    const { client, stream, sessionId } = await rig.open();
    stream.send({ type: "error", code: "terminal_pty_failed", message: "The holder was killed." });
    expect(await failureOf(client, sessionId)).toMatchObject({ code: "terminal_pty_failed" });
    expect(rig.api.events(sessionId).at(-1)).toMatchObject({ type: "closed", detail: "The holder was killed." });
  });

  it("TERM-08 of an older client is reported under its own id, that of the newer under its own", async () => {
    const { client, stream, sessionId, correlationId } = await rig.open();
    const newer = attachTo(sessionId);
    const second = await connectClient(rig.gateway, newer.token);
    expect(await failureOf(client, sessionId)).toMatchObject({
      code: "terminal_taken_over",
      correlation_id: correlationId,
    });
    const { attachment } = await stream.next("attach");
    stream.send({ type: "attached", attachment, offset: 0, replay: 0 });
    await second.next("ready");
    await expect.poll(() => rig.api.following()).toBe(1);
    rig.api.publish({ type: "close_terminal", session_id: sessionId, code: "terminal_node_quarantined" });
    expect(await failureOf(second, sessionId)).toMatchObject({
      code: "terminal_node_quarantined",
      owner: "node",
      correlation_id: newer.grant.correlation_id,
    });
  });
});

describe("after news may have been missed", () => {
  it("TERM-08 a terminal ends for the reason that the api gives, and a replaced certificate ends none", async () => {
    const [released, replaced] = [await rig.open(), await rig.open()];
    await expect.poll(() => rig.api.following()).toBe(1);
    await rig.api.goAway();
    rig.api.onAdmit = ({ session_id }) =>
      session_id === released.sessionId
        ? { code: "terminal_session_unknown", reason: "terminal_allocation_released" }
        : { code: "identity_revoked" };
    await rig.api.comeBack();
    expect(await failureOf(released.client, released.sessionId)).toMatchObject({
      code: "terminal_allocation_released",
    });
    expect((await replaced.stream.closed).code).toBe(1006);
    rig.api.onAdmit = undefined;
    const back = await connectNode(rig.gateway, replaced.sessionId, rig.node);
    await comeUp(back);
    back.type("still here");
    await replaced.client.until("still here");
  });
});
