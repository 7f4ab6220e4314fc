// What the command's client of a terminal does with frames that a real gateway sends rarely: credit, gaps, silence. With
// the command's own sockets and requests, and a gateway that the test plays.

import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { CallError, type Client } from "@holdfast/contracts/client";
import { createTerminalToken } from "@holdfast/contracts/endpoints/terminals";
import { ApiError } from "@holdfast/contracts/errors";
import { terminalFailures } from "@holdfast/contracts/reasons/terminal";
import { ACKNOWLEDGE_BYTES, type InputPlace, WINDOW_BYTES } from "@holdfast/contracts/terminal/frames";
import { uuidv7 } from "@holdfast/kit/uuid";
import { openTerminalClient } from "@holdfast/terminal-client/client";
import type { Phase, State } from "@holdfast/terminal-client/states";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type StandIn, startStandIn } from "../../../testkit/gateway/stand-in.ts";
import { commandEnvironment } from "../../src/commands/terminal/environment.ts";
import { errorOf } from "../../src/commands/terminal/failure.ts";
import type { LocalTerminal } from "../../src/commands/terminal/local-terminal.ts";
import { runSession } from "../../src/commands/terminal/session.ts";

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

/** The api's side: tokens for the stand-in, and the reports. */
function standInApi(deadlineSeconds = 15) {
  const reports: unknown[] = [];
  const wanted: unknown[] = [];
  const client = (async (endpoint: unknown, call: { body: unknown }) => {
    if (endpoint !== createTerminalToken) return void reports.push(call.body);
    wanted.push(call.body);
    const gone = new ApiError("terminal_session_unknown");
    if (ended) throw new CallError(gone.status, gone.envelope("c-2"));
    const grant = { token: "hfp_t", url, session_id: sessionId, correlation_id: "c-1" };
    return { ...grant, expires_at: new Date().toISOString(), deadline_seconds: deadlineSeconds };
  }) as unknown as Client;
  return {
    environment: commandEnvironment(client, { url: "", token: "" }, { allocationId: uuidv7() }),
    reports,
    wanted,
  };
}

function connecting(deadlineSeconds?: number) {
  const api = standInApi(deadlineSeconds);
  const output: { bytes: Buffer; done: () => void }[] = [];
  const states: State[] = [];
  const client = openTerminalClient<Buffer>({
    shell: undefined,
    environment: api.environment,
    display: { start: () => undefined, write: (bytes, done) => void output.push({ bytes, done }) },
    onState: (state) => void states.push(state),
  });
  client.resize({ cols: 80, rows: 24 });
  onTestFinished(() => client.leave());
  const reaches = (phase: Phase) => expect.poll(() => client.state().phase).toBe(phase);
  const failure = async () => {
    await reaches("failed");
    return errorOf((client.state() as Extract<State, { phase: "failed" }>).failure);
  };
  return { client, ...api, output, states, reaches, failure };
}

async function connected(input?: InputPlace) {
  const at = connecting();
  const server = await gateway.nextClient();
  server.say(ready(1_000, input));
  await at.reaches("ready");
  return { server, ...at };
}

async function received(output: { bytes: Buffer }[], bytes: number): Promise<void> {
  await expect.poll(() => output.reduce((sum, one) => sum + one.bytes.length, 0)).toBe(bytes);
}

/** Loses the connection, and returns the gateway's end of the next. */
async function reconnected({ server, client, reaches }: Awaited<ReturnType<typeof connected>>) {
  server.hangUp();
  await reaches("pausing");
  client.tryAgain();
  return gateway.nextClient();
}

describe("a terminal's client", () => {
  it("TERM-02 says its size first, and where in the output it is when it comes back", async () => {
    const at = await connected();
    await at.server.until(({ frames }) => frames.length > 0);
    expect(at.server.frames[0]).toEqual({ type: "resize", cols: 80, rows: 24 });
    at.server.show("0123456789");
    await received(at.output, 10);
    await reconnected(at);
    expect(at.wanted.at(-1)).toEqual({ session_id: sessionId, offset: 1_010 });
  });

  it("TERM-10 acknowledges what was shown, not what arrived", async () => {
    const { server, output } = await connected();
    const half = Buffer.alloc(ACKNOWLEDGE_BYTES / 2);
    for (let count = 0; count < 4; count += 1) server.show(half);
    await received(output, 2 * ACKNOWLEDGE_BYTES);
    expect(server.frames.map(({ type }) => type)).not.toContain("ack");
    for (const { done } of output) done();
    await server.until(({ frames }) => frames.filter(({ type }) => type === "ack").length === 2);
    expect(server.frames.at(-1)).toEqual({ type: "ack", bytes: 2 * ACKNOWLEDGE_BYTES });
  });

  it("TERM-11 counts from where output goes on after a gap", async () => {
    const at = await connected();
    at.server.show("old");
    await received(at.output, 3);
    at.server.say(ready(5_000));
    at.server.show(Buffer.alloc(ACKNOWLEDGE_BYTES));
    await received(at.output, 3 + ACKNOWLEDGE_BYTES);
    for (const { done } of at.output) done();
    await at.server.until(({ frames }) => frames.some(({ type }) => type === "ack"));
    expect(at.server.frames.at(-1)).toEqual({ type: "ack", bytes: ACKNOWLEDGE_BYTES });
    await reconnected(at);
    expect(at.wanted.at(-1)).toEqual({ session_id: sessionId, offset: 5_000 + ACKNOWLEDGE_BYTES });
  });

  it("TERM-10 sends what was not confirmed again over the next connection, from where it is wanted", async () => {
    const at = await connected({ attachment: 1, from: 0 });
    at.client.write(Buffer.from("0123456789"));
    await at.server.until(({ typed }) => typed() === "0123456789");
    at.server.say({ type: "ack", bytes: 4 });
    await expect.poll(at.client.unconfirmed).toBe(6);
    const again = await reconnected(at);
    at.client.write(Buffer.from("x"));
    again.say(ready(1_000, { attachment: 1, from: 6 }));
    await again.until(({ typed }) => typed() === "6789x");
    expect(again.frames).toContainEqual({ type: "input", attachment: 1, from: 6 });
    // The node's stream broke under this connection: the same, without another.
    again.say({ type: "input", attachment: 2, from: 8 });
    await again.until(({ typed }) => typed() === "6789x89x");
    expect(again.frames.at(-1)).toEqual({ type: "input", attachment: 2, from: 8 });
  });

  it("TERM-10 goes on with input when the connection before it closes late", async () => {
    const { server, client, reaches } = await connected({ attachment: 1, from: 0 });
    server.say({
      ...{ type: "error", code: "terminal_gateway_draining", ...terminalFailures.terminal_gateway_draining },
      correlation_id: "c-2",
    });
    await reaches("pausing");
    client.tryAgain();
    const again = await gateway.nextClient();
    again.say(ready(1_000, { attachment: 2, from: 0 }));
    await reaches("ready");
    server.hangUp();
    await server.closed;
    client.write(Buffer.from("ls"));
    await again.until(({ typed }) => typed() === "ls");
    expect(client.unconfirmed()).toBe(2);
  });

  it("TERM-10 counts input as not confirmed which was under way to a gateway whose successor does not count", async () => {
    const at = await connected({ attachment: 1, from: 0 });
    at.client.write(Buffer.from("sent"));
    await at.server.until(({ typed }) => typed() === "sent");
    const again = await reconnected(at);
    at.client.write(Buffer.from("kept"));
    again.say(ready(1_000));
    await again.until(({ typed }) => typed() === "kept");
    expect(at.client.unconfirmed()).toBe("sent".length);
  });

  it("TERM-10 ends with the shell's exit, and not with a connection that breaks", async () => {
    const { server, client, reaches } = await connected();
    server.say({ type: "exit", code: 3, signal: null });
    await reaches("ended");
    expect(client.state()).toEqual({ phase: "ended", exit: { code: 3, signal: null } });
    const broken = await connected();
    broken.server.hangUp();
    await broken.reaches("pausing");
    expect(broken.client.state()).toMatchObject({ lost: { shell: sessionId, cause: "closed" } });
  });

  it("TERM-09 tells a gateway that opens nothing from one that is not there, here and to the api", async () => {
    gateway.behave("refused");
    const refused = connecting();
    expect(await refused.failure()).toMatchObject({ code: "terminal_gateway_upgrade_failed" });
    expect(refused.reports).toMatchObject([{ code: "terminal_gateway_upgrade_failed" }]);
    url = "ws://127.0.0.1:9/v1/terminal";
    const missing = connecting();
    expect(await missing.failure()).toMatchObject({
      code: "terminal_public_route_missing",
      details: { hop: "terminal_public_route", owner: "operator", correlation_id: "c-1" },
    });
    expect(missing.reports).toMatchObject([{ code: "terminal_public_route_missing" }]);
  });

  it("TERM-05 gives up when nothing comes in the time that was promised", async () => {
    const { failure, reports } = connecting(2);
    await gateway.nextClient();
    expect(await failure()).toMatchObject({ code: "terminal_ui_connecting_stuck" });
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
    const { failure, reports } = connecting(-1.9);
    expect(await failure()).toMatchObject({ code: "terminal_public_route_missing" });
    expect(reports).toMatchObject([{ detail: "The connection did not open in time." }]);
  });

  it("TERM-09 passes on what the gateway says, with what it says more than the catalogue", async () => {
    const { failure, reports } = connecting();
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
    expect(await failure()).toMatchObject({
      message: "The node could not start a shell for this user. There is no user alice on this node.",
      nextStep: "Make it.",
    });
    expect(reports).toEqual([]);
  });
});

describe("a client that lost its shell", () => {
  /** A person's terminal, reduced to what is written to them. */
  function atTerminal() {
    const { environment, wanted } = standInApi();
    const notes: string[] = [];
    const lines: string[] = [];
    let line: string | undefined;
    let type: (bytes: Buffer) => void = () => undefined;
    const local = {
      interactive: true,
      size: () => ({ cols: 80, rows: 24 }),
      onInput: (listener: (bytes: Buffer) => void) => {
        type = listener;
      },
      ...{ onInputEnd() {}, onResize() {}, pauseInput() {}, resumeInput() {}, begin() {} },
      write: (_: Buffer, done: () => void) => done(),
      isFullScreen: () => false,
      note: (text: string) => void notes.push(text),
      status(text: string | undefined) {
        line = text;
        if (text) lines.push(text);
      },
    } as Partial<LocalTerminal> as LocalTerminal;
    const leaving = new AbortController();
    const session = runSession({
      ...{ shell: undefined, environment, local, signal: leaving.signal },
      progress: { reached: () => undefined, clear: () => undefined },
      leave: (exitCode) => leaving.abort({ exitCode }),
    });
    onTestFinished(() => leaving.abort({ exitCode: 0 }));
    const hurry = () => type(Buffer.from([0x12]));
    return { session, notes, lines, line: () => line, wanted, hurry, leaving };
  }

  async function lost(how: "fallSilent" | "hangUp" = "hangUp") {
    const at = atTerminal();
    const server = await gateway.nextClient();
    server.say(ready(1_000));
    await server.until(({ frames }) => frames.length > 0);
    server[how]();
    gateway.behave("silent");
    await expect.poll(at.line).toContain(". Try 1 in ");
    return at;
  }

  it("TERM-10 learns that the gateway does not answer", async () => {
    const { server, client, reaches } = await connected();
    server.fallSilent();
    await reaches("pausing");
    expect(client.state()).toMatchObject({ lost: { cause: "unresponsive" } });
  });

  it("TERM-10 learns that the node does not answer, and that it is back, and stays connected", async () => {
    const { server, states } = await connected();
    const since = new Date().toISOString();
    const before = states.length;
    server.say({ type: "unresponsive", cause: "silent", since });
    server.say({ type: "responsive" });
    await expect.poll(() => states.slice(before).map(({ phase }) => phase)).toEqual(["unresponsive", "ready"]);
    expect(states[before]).toMatchObject({ node: { cause: "silent", since } });
  });

  it("TERM-10 tries until it is back, at once when a person wants it, without a token for a silent gateway", async () => {
    const { notes, lines, line, hurry, wanted } = await lost("fallSilent");
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
    expect(wanted).toHaveLength(1);
    expect(notes).toEqual(["Unresponsive: the gateway does not answer."]);
    gateway.behave("open");
    hurry();
    const server = await gateway.nextClient();
    server.say(ready(1_000));
    await expect.poll(() => notes.at(-1)).toBe("Reconnected.");
    expect(line()).toBeUndefined();
    expect(wanted.at(-1)).toMatchObject({ session_id: sessionId });
  });

  it("TERM-10 ends with the reason when the shell has ended", async () => {
    const { session, hurry } = await lost();
    ended = true;
    gateway.behave("open");
    hurry();
    const { ending } = await session;
    expect(ending).toMatchObject({ failure: { code: "terminal_session_unknown" } });
  });

  it("TERM-10 stops when a person leaves", async () => {
    const { session, leaving, line } = await lost();
    leaving.abort({ exitCode: 130 });
    expect(await session).toMatchObject({ ending: "left", shell: sessionId, wasConnected: false });
    expect(line()).toBeUndefined();
  });
});
