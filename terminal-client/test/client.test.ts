// The client over all of its connections, with a gateway that the test plays and a clock that it moves.

import { clientWaitMs } from "@holdfast/contracts/terminal/deadlines";
import { ACKNOWLEDGE_BYTES, TERMINAL_PROTOCOL, TOKEN_PROTOCOL } from "@holdfast/contracts/terminal/frames";
import { DETECTION_MS, PING_MS } from "@holdfast/contracts/terminal/liveness";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { openTerminalClient } from "../src/client.ts";
import type { OutputStart } from "../src/environment.ts";
import type { Phase } from "../src/states.ts";
import { type FakeGateway, fakeGateway, grant } from "./fake-gateway.ts";

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
});

function open({ shell, gateway = fakeGateway() }: { shell?: string; gateway?: FakeGateway } = {}) {
  const starts: OutputStart[] = [];
  const output: (() => void)[] = [];
  const phases: Phase[] = [];
  const client = openTerminalClient<Buffer>({
    shell,
    environment: gateway.environment,
    display: { start: (relation) => void starts.push(relation), write: (_, shown) => void output.push(shown) },
    onState: ({ phase }) => void phases.push(phase),
  });
  onTestFinished(() => client.leave());
  const lose = async () => {
    gateway.sockets.at(-1)?.events.onClose();
    client.tryAgain();
  };
  return { gateway, client, starts, output, phases, lose };
}

describe("a client over its connections", () => {
  it("TERM-02 offers the token as a subprotocol, and sends its size when the connection opens", async () => {
    const { gateway, client, phases } = open();
    client.resize({ cols: 100, rows: 30 });
    const socket = await gateway.ready();
    expect(socket.protocols.slice(0, 2)).toEqual([TERMINAL_PROTOCOL, `${TOKEN_PROTOCOL}${grant.token}`]);
    expect(socket.sent[0]).toBe('{"type":"resize","cols":100,"rows":30}');
    expect(phases).toEqual(["joining", "waiting", "ready"]);
  });

  it("TERM-10 sends nothing over a new connection before its place was named, and then what was not confirmed", async () => {
    const { gateway, client, lose } = open();
    const first = await gateway.ready();
    client.write(Buffer.from("0123456789"));
    first.say({ type: "ack", bytes: 4 });
    expect([first.typed(), client.waiting()]).toEqual(["0123456789", 6]);
    await lose();
    await vi.advanceTimersByTimeAsync(0);
    const second = gateway.sockets[1];
    second?.events.onOpen();
    client.write(Buffer.from("x"));
    expect(second?.typed()).toBe("");
    expect((await gateway.ready({ from: 6 })).typed()).toBe("6789x");
    expect(client.unconfirmed()).toBe(7);
  });

  it("TERM-10 is not disturbed by a connection that closes after the next was opened", async () => {
    const { gateway, client, lose } = open();
    const first = await gateway.ready();
    await lose();
    const second = await gateway.ready();
    first.events.onClose();
    first.say({ type: "exit", code: 1, signal: null });
    client.write(Buffer.from("ls"));
    expect([client.state().phase, second.typed()]).toEqual(["ready", "ls"]);
  });

  it("TERM-11 asks for output from where it is, and says how the next follows", async () => {
    const { gateway, client, starts, lose } = open();
    const socket = await gateway.ready({ offset: 1_000 });
    socket.events.onBytes(Buffer.alloc(10));
    await lose();
    await gateway.ready({ offset: 1_010 });
    await lose();
    await gateway.ready({ offset: 2_000 });
    await lose();
    await gateway.ready({ offset: 500 });
    expect(gateway.wanted.map(({ offset }) => offset)).toEqual([undefined, 1_010, 1_010, 2_000]);
    client.openNew();
    await gateway.ready({ session: "s2" });
    expect(starts).toEqual(["first", "continued", "gap", "replaced", "replaced"]);
    expect(gateway.wanted.at(-1)).toEqual({ shell: undefined, offset: undefined });
  });

  it("TERM-10 acknowledges output when it was shown, and none of an earlier count", async () => {
    const { gateway, output } = open();
    const socket = await gateway.ready();
    const acknowledged = () => socket.sent.filter((data) => String(data).includes('"ack"'));
    socket.events.onBytes(Buffer.alloc(ACKNOWLEDGE_BYTES));
    expect(acknowledged()).toEqual([]);
    output[0]?.();
    expect(acknowledged()).toEqual([JSON.stringify({ type: "ack", bytes: ACKNOWLEDGE_BYTES })]);
    socket.events.onBytes(Buffer.alloc(ACKNOWLEDGE_BYTES));
    socket.say({ type: "ready", session_id: "s1", offset: 9e6, window: 1, replay: 0 });
    output[1]?.();
    expect(acknowledged()).toHaveLength(1);
  });

  it("TERM-10 notices a gateway that does not answer within ten seconds, and keeps one that does", async () => {
    const { gateway, client } = open();
    const socket = await gateway.ready();
    for (let asked = 0; asked < 5; asked += 1) {
      await vi.advanceTimersByTimeAsync(PING_MS);
      socket.say({ type: "pong" });
    }
    expect(client.state().phase).toBe("ready");
    await vi.advanceTimersByTimeAsync(DETECTION_MS);
    expect(client.state()).toMatchObject({ phase: "pausing", lost: { cause: "unresponsive" } });
    expect(socket.isOpen).toBe(false);
  });

  it("TERM-05 ends an opening that nothing answers, and reports it", async () => {
    const { gateway, client } = open();
    await vi.advanceTimersByTimeAsync(0);
    const [socket] = gateway.sockets;
    socket?.events.onOpen();
    const answering = setInterval(() => socket?.say({ type: "pong" }), PING_MS);
    await vi.advanceTimersByTimeAsync(clientWaitMs(grant.deadlineSeconds));
    clearInterval(answering);
    expect(client.state()).toMatchObject({
      phase: "failed",
      failure: { code: "terminal_ui_connecting_stuck", correlationId: "c1" },
    });
    expect(gateway.reports).toHaveLength(1);
    expect(socket?.isOpen).toBe(false);
  });

  it("TERM-01 shows why no token was granted, and asks again for the same shell", async () => {
    const gateway = fakeGateway();
    gateway.refusal = new TypeError("fetch failed");
    const { client } = open({ shell: "s1", gateway });
    await vi.advanceTimersByTimeAsync(0);
    expect(client.state()).toMatchObject({ phase: "failed", shell: "s1", failure: { code: "unreachable" } });
    gateway.refusal = undefined;
    client.tryAgain();
    await gateway.ready();
    expect(client.state()).toMatchObject({ phase: "ready", shell: "s1" });
  });

  it("TERM-10 does nothing after it was left", async () => {
    const { gateway, client, phases } = open();
    const socket = await gateway.ready();
    client.leave();
    const before = phases.length;
    socket.events.onClose();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([socket.isOpen, phases.length, gateway.wanted.length]).toEqual([false, before, 1]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
