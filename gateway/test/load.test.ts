// Peers that ignore their credit, and many that come and go at once: nothing piles up, nothing stays.

import { describe, expect, it, onTestFinished } from "vitest";
import type { WebSocket } from "ws";
import { certificateFor, connectClient, connectNode } from "../../testkit/gateway/gateway.ts";
import { useRig } from "../../testkit/gateway/rig.ts";
import { MOST_UNSENT_BYTES } from "../src/listeners/forward.ts";

const rig = useRig();

/** More than the buffers of two kernels and of the gateway can hold together. */
const FLOOD_CHUNKS = 320;
const chunk = Buffer.alloc(128 * 1024, "y\n");

/** It still sends: one that did neither would be cut off as dead, on a busy machine in the middle of the test. */
function stopReading(socket: WebSocket): void {
  socket.pause();
  const alive = setInterval(() => socket.ping(), 1_000);
  onTestFinished(() => clearInterval(alive));
}

describe("flow control", () => {
  it("TERM-10 a node that floods a client that does not read is not read either", async () => {
    const { client, stream } = await rig.open();
    stopReading(client.socket);
    for (let sent = 0; sent < FLOOD_CHUNKS; sent += 1) stream.type(chunk);
    const total = FLOOD_CHUNKS * chunk.length;
    // It comes to a stop with most of it still at the node.
    const passed = () => rig.gateway.metric("holdfast_gateway_terminal_bytes_total", 'direction="to_client"');
    let before = -1;
    await expect
      .poll(
        async () => {
          const now = await passed();
          const still = now === before && now > 0;
          before = now;
          return still;
        },
        { interval: 300 },
      )
      .toBe(true);
    expect(stream.socket.bufferedAmount).toBeGreaterThan(total / 2);
    // Another terminal is none the worse.
    const other = await rig.open();
    other.client.type("echo");
    await other.stream.until("echo");
    other.stream.type("echo");
    await other.client.until("echo");
    // And everything arrives once the client reads.
    client.socket.resume();
    await expect.poll(() => client.receivedBytes(), { interval: 200 }).toBe(total);
  });

  it("TERM-10 a client that does not read holds up nobody who takes its place", async () => {
    const { client, stream, sessionId } = await rig.open();
    stopReading(client.socket);
    const before = await rig.gateway.metric("holdfast_gateway_terminal_bytes_total", 'direction="to_client"');
    for (let sent = 0; sent < FLOOD_CHUNKS / 2; sent += 1) stream.type(chunk);
    await expect
      .poll(() => rig.gateway.metric("holdfast_gateway_terminal_bytes_total", 'direction="to_client"'))
      .toBeGreaterThan(before + MOST_UNSENT_BYTES);
    const { token } = rig.attachTo(sessionId);
    const newer = await connectClient(rig.gateway, token);
    const { attachment } = await stream.next("attach");
    stream.send({ type: "attached", attachment, offset: 0, replay: 0 });
    stream.type("for the newer");
    await newer.until("for the newer");
    expect(newer.received().toString()).toBe("for the newer");
    client.socket.terminate();
  });

  it("TERM-10 a client that floods a node that does not read is not read either", async () => {
    const { client, stream } = await rig.open();
    stopReading(stream.socket);
    for (let sent = 0; sent < FLOOD_CHUNKS; sent += 1) client.type(chunk);
    const total = FLOOD_CHUNKS * chunk.length;
    let before = -1;
    await expect
      .poll(
        () => {
          const still = client.socket.bufferedAmount === before;
          before = client.socket.bufferedAmount;
          return still;
        },
        { interval: 300 },
      )
      .toBe(true);
    expect(client.socket.bufferedAmount).toBeGreaterThan(total / 2);
    stream.socket.resume();
    await expect.poll(() => stream.receivedBytes(), { interval: 200 }).toBe(total);
  });
});

describe("many", () => {
  it("TERM-10 300 terminals dropped abruptly leave nothing behind", async () => {
    const states = ["opening", "attaching", "attached", "detached", "away"];
    const kinds = ["bindings", "client_sockets", "node_sockets", "unsent_events"];
    const held = async () => ({
      states: await Promise.all(
        states.map((one) => rig.gateway.metric("holdfast_gateway_terminals", `reason="${one}"`)),
      ),
      kinds: await Promise.all(kinds.map((one) => rig.gateway.metric("holdfast_gateway_held", `reason="${one}"`))),
    });
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    const [before, timersBefore] = [await held(), timers()];
    const count = 300;
    const own = await certificateFor(rig.api.authority);
    const all = Array.from({ length: count }, async (_, index) => {
      const { token, grant } = rig.api.grant({ node_id: own.id, limits: { detached_seconds: 0.2 } });
      const client = await connectClient(rig.gateway, token);
      // Some go before the shell is there, some after.
      if (index % 3 === 0) client.socket.terminate();
      const stream = await connectNode(rig.gateway, grant.session_id, own).catch(() => undefined);
      if (!stream) return;
      stream.send({ type: "hello", offset: 0, end: 0 });
      if (index % 3 === 1) await stream.next("attach").catch(() => undefined);
      client.socket.terminate();
      if (index % 2 === 0) stream.socket.terminate();
    });
    await Promise.all(all);
    await expect.poll(held, { interval: 200 }).toEqual(before);
    // Beside the terminals' there are those of the connections that HTTP clients keep.
    await expect.poll(timers).toBeLessThan(timersBefore + 30);
  });
});
