// What a terminal's client does with frames that a real gateway sends rarely: credit, gaps, silence.

import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import type { Client } from "@holdfast/contracts/client";
import { createTerminalToken } from "@holdfast/contracts/endpoints/terminals";
import { ACKNOWLEDGE_BYTES, type InputPlace, WINDOW_BYTES } from "@holdfast/contracts/terminal-frames";
import { createTerminalInput } from "@holdfast/contracts/terminal-input";
import { uuidv7 } from "@holdfast/kit/uuid";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type StandIn, startStandIn } from "../../gateway/test/support/stand-in.ts";
import { connectTerminal } from "../src/commands/terminal/connection.ts";
import { gatewayAccess } from "../src/commands/terminal/gateway-access.ts";

let gateway: StandIn;
let url: string;
beforeAll(async () => {
  gateway = await startStandIn();
});
beforeEach(() => {
  gateway.behave("open");
  ({ url } = gateway);
});
afterAll(() => gateway.stop());

const sessionId = uuidv7();
const ready = (offset: number, input?: InputPlace) =>
  ({
    ...({ type: "ready", session_id: sessionId, offset, window: WINDOW_BYTES, replay: 0 } as const),
    ...(input ? { input } : {}),
  }) as const;

/** The api's side: a token for the stand-in, and what it is told. */
function connecting(deadlineSeconds = 15, input = createTerminalInput<Buffer>(1_000)) {
  const reports: unknown[] = [];
  const output: { bytes: Buffer; done: () => void }[] = [];
  const client = (async (endpoint: unknown, call: { body: unknown }) => {
    if (endpoint !== createTerminalToken) return void reports.push(call.body);
    const grant = { token: "hfp_t", url, session_id: sessionId, correlation_id: "c-1" };
    return { ...grant, expires_at: new Date().toISOString(), deadline_seconds: deadlineSeconds };
  }) as unknown as Client;
  const connection = connectTerminal({
    client,
    gateway: gatewayAccess({ url: "", token: "" }),
    allocationId: uuidv7(),
    size: () => ({ cols: 80, rows: 24 }),
    onStep: () => undefined,
    onOutput: (bytes, done) => void output.push({ bytes, done }),
    input,
    onConfirmed: () => undefined,
    signal: new AbortController().signal,
  });
  connection.catch(() => undefined);
  return { connection, reports, output };
}

async function connected() {
  const { connection, ...rest } = connecting();
  const server = await gateway.nextClient();
  server.say(ready(1_000));
  return { server, connection: await connection, ...rest };
}

async function received(output: { bytes: Buffer }[], bytes: number): Promise<void> {
  await expect.poll(() => output.reduce((sum, one) => sum + one.bytes.length, 0)).toBe(bytes);
}

describe("a terminal's client", () => {
  it("TERM-02 says its size first, and where in the output it is", async () => {
    const { server, connection, output } = await connected();
    await server.until(({ frames }) => frames.length > 0);
    expect(server.frames[0]).toEqual({ type: "resize", cols: 80, rows: 24 });
    server.show("0123456789");
    await received(output, 10);
    expect(connection.offset()).toBe(1_010);
    connection.close();
  });

  it("TERM-10 acknowledges what somebody has got, not what arrived", async () => {
    const { server, connection, output } = await connected();
    const half = Buffer.alloc(ACKNOWLEDGE_BYTES / 2);
    for (let count = 0; count < 4; count += 1) server.show(half);
    await received(output, 2 * ACKNOWLEDGE_BYTES);
    expect(server.frames.map(({ type }) => type)).not.toContain("ack");
    for (const { done } of output) done();
    await server.until(({ frames }) => frames.filter(({ type }) => type === "ack").length === 2);
    expect(server.frames.at(-1)).toEqual({ type: "ack", bytes: 2 * ACKNOWLEDGE_BYTES });
    connection.close();
  });

  it("TERM-11 counts anew from where output goes on after a gap", async () => {
    const { server, connection, output } = await connected();
    server.show("old");
    await received(output, 3);
    server.say(ready(5_000));
    server.show(Buffer.alloc(ACKNOWLEDGE_BYTES));
    await received(output, 3 + ACKNOWLEDGE_BYTES);
    expect(connection.offset()).toBe(5_000 + ACKNOWLEDGE_BYTES);
    for (const { done } of output) done();
    await server.until(({ frames }) => frames.some(({ type }) => type === "ack"));
    expect(server.frames.at(-1)).toEqual({ type: "ack", bytes: ACKNOWLEDGE_BYTES });
    connection.close();
  });

  it("TERM-10 sends what was not confirmed again over the next connection, from where it is wanted", async () => {
    const input = createTerminalInput<Buffer>(1_000);
    const first = connecting(15, input);
    const server = await gateway.nextClient();
    server.say(ready(0, { attachment: 1, from: 0 }));
    const connection = await first.connection;
    input.add(Buffer.from("0123456789"));
    connection.sendInput();
    await server.until(({ typed }) => typed() === "0123456789");
    server.say({ type: "ack", bytes: 4 });
    server.hangUp();
    expect(await connection.ended).toBe("lost");
    input.add(Buffer.from("x"));
    const second = connecting(15, input);
    const again = await gateway.nextClient();
    again.say(ready(0, { attachment: 1, from: 6 }));
    await again.until(({ typed }) => typed() === "6789x");
    expect(again.frames).toContainEqual({ type: "input", attachment: 1, from: 6 });
    // The node's stream broke under this connection: the same, without another.
    again.say({ type: "input", attachment: 2, from: 8 });
    await again.until(({ typed }) => typed() === "6789x89x");
    expect(again.frames.at(-1)).toEqual({ type: "input", attachment: 2, from: 8 });
    (await second.connection).close();
  });

  it.for<[string, (server: Awaited<ReturnType<typeof connected>>["server"]) => void, unknown]>([
    [
      "the shell's exit",
      (server) => server.say({ type: "exit", code: 3, signal: null }),
      { exit: { code: 3, signal: null } },
    ],
    ["a connection that breaks", (server) => server.hangUp(), "lost"],
  ])("TERM-10 ends with %s", async ([, act, ending]) => {
    const { server, connection } = await connected();
    act(server);
    expect(await connection.ended).toEqual(ending);
    connection.close();
  });

  it("TERM-09 tells a gateway that opens nothing from one that is not there, here and to the api", async () => {
    gateway.behave("refused");
    const refused = connecting();
    await expect(refused.connection).rejects.toMatchObject({ code: "terminal_gateway_upgrade_failed" });
    expect(refused.reports).toMatchObject([{ code: "terminal_gateway_upgrade_failed" }]);
    url = "ws://127.0.0.1:9/v1/terminal";
    const missing = connecting();
    await expect(missing.connection).rejects.toMatchObject({
      code: "terminal_public_route_missing",
      details: { hop: "terminal_public_route", owner: "operator", correlation_id: "c-1" },
    });
    expect(missing.reports).toMatchObject([{ code: "terminal_public_route_missing" }]);
  });

  it("TERM-05 gives up when nothing comes in the time that was promised", async () => {
    const { connection, reports } = connecting(-1);
    await gateway.nextClient();
    await expect(connection).rejects.toMatchObject({ code: "terminal_ui_connecting_stuck" });
    expect(reports).toMatchObject([{ code: "terminal_ui_connecting_stuck" }]);
  });

  it("TERM-05 gives up, too, when what answers never comes to an end with its greeting", async () => {
    const slow = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.write("HTTP/1.1 101 Switching Protocols\r\nx: ");
      const writing = setInterval(() => socket.write("x"), 10);
      socket.on("close", () => clearInterval(writing));
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void slow.close());
    await once(slow, "listening");
    url = `ws://127.0.0.1:${(slow.address() as AddressInfo).port}/v1/terminal`;
    const { connection, reports } = connecting(-2.9);
    await expect(connection).rejects.toMatchObject({ code: "terminal_public_route_missing" });
    expect(reports).toMatchObject([{ detail: "the connection did not open in time" }]);
  });

  it("TERM-09 passes on what the gateway says, with what it says more than the catalogue", async () => {
    const { connection, reports } = connecting();
    const server = await gateway.nextClient();
    server.say({
      type: "error",
      code: "terminal_pty_failed",
      hop: "workload_terminal_startup",
      owner: "node",
      message: "There is no user alice on this node.",
      action: "Make it.",
      retryable: true,
      correlation_id: "c-2",
    });
    await expect(connection).rejects.toMatchObject({
      message: "The node could not start a shell for this user. There is no user alice on this node.",
      nextStep: "Make it.",
    });
    expect(reports).toEqual([]);
  });
});
