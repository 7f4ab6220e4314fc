// The command at a shell, with a gateway that the test plays and a clock that it moves.

import type { ServerFrame } from "@holdfast/contracts/terminal-frames";
import { DETECTION_MS } from "@holdfast/contracts/terminal-liveness";
import type { Environment, SocketEvents } from "@holdfast/terminal-client/environment";
import type { Phase, State } from "@holdfast/terminal-client/states";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { LocalTerminal } from "./local-terminal.ts";
import { endingOf, runSession } from "./session.ts";

type Connected = { events: SocketEvents<Buffer>; sent: (string | Buffer)[]; isOpen: boolean };

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
});

function start({ interactive = true } = {}) {
  const notes: string[] = [];
  const shown: string[] = [];
  const wanted: { shell: string | undefined; offset: number | undefined }[] = [];
  const sockets: Connected[] = [];
  let line: string | undefined;
  let type: (bytes: Buffer) => void = () => {};
  const gateway = { answers: true };
  const environment: Environment<Buffer> = {
    async requestToken({ shell, offset }) {
      wanted.push({ shell, offset });
      const url = "ws://gateway/v1/terminal";
      return { token: "t", url, sessionId: "s1", correlationId: "c1", deadlineSeconds: 15 };
    },
    openSocket(_url, _protocols, events) {
      const socket: Connected = { events, sent: [], isOpen: true };
      sockets.push(socket);
      return {
        isOpen: () => socket.isOpen,
        send: (data) => void socket.sent.push(data),
        close: () => {
          socket.isOpen = false;
        },
      };
    },
    checkRoute: async () => ({ reachable: gateway.answers }),
    report: () => undefined,
    describeError: () => ({ message: "unreachable", action: "", retryable: true }),
  };
  const local: LocalTerminal = {
    interactive,
    size: () => ({ cols: 80, rows: 24 }),
    onInput: (listener) => {
      type = listener;
    },
    onInputEnd: () => undefined,
    onResize: () => undefined,
    onOutputClosed: () => undefined,
    pauseInput: () => undefined,
    resumeInput: () => undefined,
    begin: () => undefined,
    write(bytes, done) {
      shown.push(bytes.toString());
      done();
    },
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
    environment,
    local,
    progress: { reached: () => undefined, clear: () => undefined },
    signal: leaving.signal,
    leave: (exitCode) => leaving.abort({ exitCode }),
  });
  let isOver = false;
  void session.finally(() => {
    isOver = true;
  });
  const frame = (given: ServerFrame) => sockets.at(-1)?.events.onText(JSON.stringify(given));
  return {
    ...{ session, notes, shown, wanted, sockets, gateway, leaving, frame },
    isOver: () => isOver,
    line: () => line,
    type: (text: string) => type(Buffer.from(text)),
    /** Resolves when the next connection was opened by the client. */
    async ready(offset = 0) {
      await vi.advanceTimersByTimeAsync(0);
      sockets.at(-1)?.events.onOpen();
      const input = { attachment: sockets.length, from: 0 };
      frame({ type: "ready", session_id: "s1", offset, window: 1, replay: 0, input });
    },
  };
}

const sentInput = ({ sent }: Connected) =>
  Buffer.concat(sent.filter((data) => typeof data !== "string") as Buffer[]).toString();

describe("a command at a shell", () => {
  it("TERM-10 reconnects to the same shell when the gateway does not answer, and goes on", async () => {
    const at = start();
    await at.ready();
    at.sockets[0]?.events.onBytes(Buffer.from("12345"));
    at.type("ls");
    await vi.advanceTimersByTimeAsync(DETECTION_MS);
    expect(at.notes).toEqual(["Unresponsive: the gateway does not answer."]);
    expect(at.line()).toMatch(/^Unresponsive\. Try 1 in 1 s · Ctrl-R: now · Ctrl-C: stop · 2 typed bytes kept$/);
    expect([at.isOver(), at.sockets[0]?.isOpen]).toEqual([false, false]);
    at.type("!");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(at.wanted).toEqual([
      { shell: undefined, offset: undefined },
      { shell: "s1", offset: 5 },
    ]);
    await at.ready(5);
    expect(at.notes.at(-1)).toBe("Reconnected.");
    expect(at.line()).toBeUndefined();
    expect(at.sockets.map(sentInput)).toEqual(["ls", "ls!"]);
    expect(at.isOver()).toBe(false);
    at.frame({ type: "exit", code: 3, signal: null });
    expect(await at.session).toMatchObject({ ending: { exit: { code: 3, signal: null } }, shell: "s1" });
  });

  it("TERM-10 stays connected while the node does not answer", async () => {
    const at = start();
    await at.ready();
    at.frame({ type: "unresponsive", cause: "silent", since: "2026-01-01T00:00:00Z" });
    expect(at.notes.at(-1)).toMatch(/^Unresponsive: the node has not answered since/);
    expect([at.isOver(), at.sockets[0]?.isOpen]).toEqual([false, true]);
    at.frame({ type: "responsive" });
    expect(at.notes.at(-1)).toBe("The node answers again.");
    expect([at.isOver(), at.sockets.length]).toEqual([false, 1]);
  });

  it("TERM-10 tries at once at Ctrl-R, and leaves at Ctrl-C while it is disconnected", async () => {
    const at = start();
    await at.ready();
    at.gateway.answers = false;
    at.sockets[0]?.events.onClose();
    expect(at.notes).toEqual(["Disconnected: the connection to the gateway broke."]);
    at.type("\x12");
    expect(at.line()).toContain("Reconnecting, try 1");
    await vi.advanceTimersByTimeAsync(0);
    expect(at.line()).toContain("Unresponsive. Try 2 in 2 s");
    at.type("\x03");
    expect(await at.session).toMatchObject({ ending: "left", shell: "s1", wasConnected: false });
    expect(at.leaving.signal.reason).toEqual({ exitCode: 130 });
    expect(at.wanted).toHaveLength(1);
  });

  it("TERM-10 gives up after ten minutes where nobody can stop it", async () => {
    const at = start({ interactive: false });
    await at.ready();
    at.gateway.answers = false;
    at.sockets[0]?.events.onClose();
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
