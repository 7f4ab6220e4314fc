// What a terminal's client does with frames that a real gateway sends rarely: credit, gaps, silence.

import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import type { Client } from "@holdfast/contracts/client";
import { createTerminalToken } from "@holdfast/contracts/endpoints/terminals";
import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { ACKNOWLEDGE_BYTES, type InputPlace, WINDOW_BYTES } from "@holdfast/contracts/terminal-frames";
import { createTerminalInput } from "@holdfast/contracts/terminal-input";
import { uuidv7 } from "@holdfast/kit/uuid";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { WebSocket } from "ws";
import { type StandIn, startStandIn } from "../../gateway/test/support/stand-in.ts";
import { type Connection, type ConnectOptions, connectTerminal } from "../src/commands/terminal/connection.ts";
import { TerminalFailure } from "../src/commands/terminal/failure.ts";
import { type GatewayAccess, gatewayAccess } from "../src/commands/terminal/gateway-access.ts";
import { createReconnecting } from "../src/commands/terminal/reconnect.ts";

let gateway: StandIn;
let url: string;
/** The api says so when it is asked for a token. */
let ended = false;
beforeAll(async () => {
  gateway = await startStandIn();
});
beforeEach(() => {
  gateway.behave("open");
  ended = false;
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
  let tokens = 0;
  const output: { bytes: Buffer; done: () => void }[] = [];
  const client = (async (endpoint: unknown, call: { body: unknown }) => {
    if (endpoint !== createTerminalToken) return void reports.push(call.body);
    tokens += 1;
    if (ended)
      throw new TerminalFailure({
        code: "terminal_session_unknown",
        ...terminalFailures.terminal_session_unknown,
        correlation_id: "c-2",
      });
    const grant = { token: "hfp_t", url, session_id: sessionId, correlation_id: "c-1" };
    return { ...grant, expires_at: new Date().toISOString(), deadline_seconds: deadlineSeconds };
  }) as unknown as Client;
  const aways: unknown[] = [];
  const access = gatewayAccess({ url: "", token: "" });
  let socket: WebSocket | undefined;
  const dial: GatewayAccess["dial"] = (...dialled) => {
    socket = access.dial(...dialled);
    return socket;
  };
  const options: ConnectOptions = {
    client,
    gateway: { ...access, dial },
    allocationId: uuidv7(),
    size: () => ({ cols: 80, rows: 24 }),
    onStep: () => undefined,
    onOutput: (bytes, done) => void output.push({ bytes, done }),
    onNodeAway: (away) => void aways.push(away),
    input,
    onConfirmed: () => undefined,
    isReported: true,
    signal: new AbortController().signal,
  };
  const connection = connectTerminal(options);
  connection.catch(() => undefined);
  return { connection, options, reports, output, aways, tokens: () => tokens, socket: () => socket as WebSocket };
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

  it("TERM-10 goes on with input when the connection before it closes late", async () => {
    const input = createTerminalInput<Buffer>(1_000);
    const first = connecting(15, input);
    const server = await gateway.nextClient();
    server.say(ready(0, { attachment: 1, from: 0 }));
    const connection = await first.connection;
    server.say({
      ...{ type: "error", code: "terminal_gateway_draining", ...terminalFailures.terminal_gateway_draining },
      correlation_id: "c-2",
    });
    await connection.ended;
    const second = connecting(15, input);
    const again = await gateway.nextClient();
    again.say(ready(0, { attachment: 2, from: 0 }));
    const { sendInput, close } = await second.connection;
    const closed = once(first.socket(), "close");
    server.hangUp();
    await closed;
    input.add(Buffer.from("ls"));
    sendInput();
    await again.until(({ typed }) => typed() === "ls");
    expect(input.unconfirmed()).toBe(2);
    close();
  });

  it("TERM-10 tells that input was not confirmed which was under way to a gateway whose successor does not count", async () => {
    const input = createTerminalInput<Buffer>(1_000);
    const first = connecting(15, input);
    const server = await gateway.nextClient();
    server.say(ready(0, { attachment: 1, from: 0 }));
    const connection = await first.connection;
    input.add(Buffer.from("sent"));
    connection.sendInput();
    await server.until(({ typed }) => typed() === "sent");
    server.hangUp();
    await connection.ended;
    input.add(Buffer.from("kept"));
    const second = connecting(15, input);
    const again = await gateway.nextClient();
    again.say(ready(0));
    await again.until(({ typed }) => typed() === "kept");
    expect(input.unconfirmed()).toBe("sent".length);
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
      hop: "workload_terminal_startup_failure",
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

describe("a client that lost its shell", () => {
  function lost(
    { options, connection }: { options: ConnectOptions; connection: Connection },
    signal?: AbortSignal,
  ) {
    const notes: string[] = [];
    const lines: string[] = [];
    let line: string | undefined;
    const local = {
      note: (text: string) => void notes.push(text),
      status(text: string | undefined) {
        line = text;
        if (text) lines.push(text);
      },
    };
    const connecting = signal ? { ...options, signal } : options;
    const { hurry, comeBack } = createReconnecting({ connecting, local, patienceMs: Number.POSITIVE_INFINITY });
    const back = comeBack(connection, "unresponsive");
    back.catch(() => undefined);
    return { notes, lines, line: () => line, hurry, back };
  }

  it("TERM-10 learns that the gateway does not answer", async () => {
    const { server, connection } = await connected();
    server.fallSilent();
    expect(await connection.ended).toBe("unresponsive");
  });

  it("TERM-10 learns that the node does not answer, and that it is back, and stays connected", async () => {
    const { server, aways } = await connected();
    const since = new Date().toISOString();
    server.say({ type: "unresponsive", cause: "silent", since });
    server.say({ type: "responsive" });
    await expect.poll(() => aways).toEqual([undefined, { cause: "silent", since }, undefined]);
  });

  it("TERM-10 tries until it is back, at once when a person wants it, without a token for a silent gateway", async () => {
    const before = await connected();
    gateway.behave("silent");
    const { notes, lines, line, hurry, back } = lost(before);
    for (const attempt of [1, 2]) {
      await expect.poll(line).toContain(`Unresponsive. Try ${attempt} in `);
      expect(line()).toMatch(/ in \d+ s · Ctrl-R: now · Ctrl-C: stop$/);
      hurry();
      await expect.poll(line).toContain(`Reconnecting, try ${attempt}`);
    }
    // The second try hangs, and nobody has to wait for its end.
    hurry();
    await expect.poll(line).toContain("Reconnecting, try 3");
    expect(lines.join("\n")).not.toContain("Try 3 in");
    expect(before.tokens()).toBe(1);
    expect(notes).toEqual(["Unresponsive: the gateway does not answer."]);
    gateway.behave("open");
    hurry();
    const server = await gateway.nextClient();
    server.say(ready(1_000));
    expect((await back).sessionId).toBe(sessionId);
    expect(line()).toBeUndefined();
  });

  it("TERM-10 ends with the reason when the shell has ended", async () => {
    const before = await connected();
    ended = true;
    const { hurry, back } = lost(before);
    hurry();
    await expect(back).rejects.toMatchObject({ code: "terminal_session_unknown" });
  });

  it("TERM-10 stops when it is told to", async () => {
    const before = await connected();
    gateway.behave("silent");
    const stopping = new AbortController();
    const { back, line } = lost(before, stopping.signal);
    await expect.poll(line).toBeDefined();
    stopping.abort(new Error("stop"));
    await expect(back).rejects.toThrow("stop");
    expect(line()).toBeUndefined();
  });
});
