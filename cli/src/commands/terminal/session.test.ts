// The command at a shell, with a gateway that the test plays and a clock that it moves.

import { DETECTION_MS } from "@holdfast/contracts/terminal/liveness";
import type { Phase, State } from "@holdfast/terminal-client/states";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { fakeGateway } from "../../../../terminal-client/test/fake-gateway.ts";
import type { LocalTerminal } from "./local-terminal.ts";
import { endingOf, runSession } from "./session.ts";

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
});

function start({ interactive = true } = {}) {
  const notes: string[] = [];
  let line: string | undefined;
  let type: (bytes: Buffer) => void = () => {};
  const gateway = fakeGateway();
  const local: LocalTerminal = {
    interactive,
    size: () => ({ cols: 80, rows: 24 }),
    onInput: (listener) => {
      type = listener;
    },
    ...{ onInputEnd() {}, onResize() {}, onOutputClosed() {}, pauseInput() {}, resumeInput() {}, begin() {} },
    write: (_, done) => done(),
    isFullScreen: () => false,
    note: (text) => void notes.push(text),
    status: (text) => {
      line = text;
    },
    close: async () => undefined,
  };
  const leaving = new AbortController();
  const session = runSession({
    shell: undefined,
    environment: gateway.environment,
    local,
    progress: { reached: () => undefined, clear: () => undefined },
    signal: leaving.signal,
    leave: (exitCode) => leaving.abort({ exitCode }),
  });
  let isOver = false;
  void session.finally(() => {
    isOver = true;
  });
  return {
    ...{ session, notes, gateway, leaving },
    isOver: () => isOver,
    line: () => line,
    type: (text: string) => type(Buffer.from(text)),
  };
}

describe("a command at a shell", () => {
  it("TERM-10 reconnects to the same shell when the gateway does not answer, and goes on", async () => {
    const at = start();
    const first = await at.gateway.ready();
    first.events.onBytes(Buffer.from("12345"));
    at.type("ls");
    await vi.advanceTimersByTimeAsync(DETECTION_MS);
    expect(at.notes).toEqual(["Unresponsive: the gateway does not answer."]);
    expect(at.line()).toMatch(/^Unresponsive\. Try 1 in 1 s · Ctrl-R: now · Ctrl-C: stop · 2 typed bytes kept$/);
    expect([at.isOver(), first.isOpen]).toEqual([false, false]);
    at.type("!");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(at.gateway.wanted).toEqual([
      { shell: undefined, offset: undefined },
      { shell: "s1", offset: 5 },
    ]);
    const second = await at.gateway.ready({ offset: 5 });
    expect(at.notes.at(-1)).toBe("Reconnected.");
    expect(at.line()).toBeUndefined();
    expect([first.typed(), second.typed()]).toEqual(["ls", "ls!"]);
    expect(at.isOver()).toBe(false);
    second.say({ type: "exit", code: 3, signal: null });
    expect(await at.session).toMatchObject({ ending: { exit: { code: 3, signal: null } }, shell: "s1" });
  });

  it("TERM-10 stays connected while the node does not answer", async () => {
    const at = start();
    const socket = await at.gateway.ready();
    socket.say({ type: "unresponsive", cause: "silent", since: "2026-01-01T00:00:00Z" });
    expect(at.notes.at(-1)).toMatch(/^Unresponsive: the node has not answered since/);
    expect([at.isOver(), socket.isOpen]).toEqual([false, true]);
    socket.say({ type: "responsive" });
    expect(at.notes.at(-1)).toBe("The node answers again.");
    expect([at.isOver(), at.gateway.sockets.length]).toEqual([false, 1]);
  });

  it("TERM-10 tries at once at Ctrl-R, and leaves at Ctrl-C while it is disconnected", async () => {
    const at = start();
    const socket = await at.gateway.ready();
    at.gateway.isReachable = false;
    socket.events.onClose();
    expect(at.notes).toEqual(["Disconnected: the connection to the gateway broke."]);
    at.type("\x12");
    expect(at.line()).toContain("Reconnecting, try 1");
    await vi.advanceTimersByTimeAsync(0);
    expect(at.line()).toContain("Unresponsive. Try 2 in 2 s");
    at.type("\x03");
    expect(await at.session).toMatchObject({ ending: "left", shell: "s1", wasConnected: false });
    expect(at.leaving.signal.reason).toEqual({ exitCode: 130 });
    expect(at.gateway.wanted).toHaveLength(1);
  });

  it("TERM-10 gives up after ten minutes where nobody can stop it", async () => {
    const at = start({ interactive: false });
    const socket = await at.gateway.ready();
    at.gateway.isReachable = false;
    socket.events.onClose();
    await vi.advanceTimersByTimeAsync(599_000);
    expect(at.isOver()).toBe(false);
    await vi.advanceTimersByTimeAsync(60_000);
    const { ending } = await at.session;
    expect(ending).toMatchObject({ gaveUp: { code: "terminal_connection_lost" } });
  });

  it("TERM-10 ends by the shell or by a failure that no try can repair, and in no other state", () => {
    const ends: Record<Phase, boolean> = {
      asking: false,
      joining: false,
      checking: false,
      waiting: false,
      ready: false,
      unresponsive: false,
      pausing: false,
      probing: false,
      stopped: false,
      failed: true,
      ended: true,
    };
    for (const [phase, isEnd] of Object.entries(ends))
      expect(endingOf({ phase } as State) !== undefined, phase).toBe(isEnd);
  });
});
