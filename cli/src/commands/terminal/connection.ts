// One connection of a client to a shell: a token, a WebSocket with it, frames. It ends with the shell's
// exit, with a reason, or broken; whether to come back is for others to decide.

import type { Client } from "@holdfast/contracts/client";
import { createTerminalToken, reportTerminalFailure } from "@holdfast/contracts/endpoints/terminals";
import type { clientFailureCodes } from "@holdfast/contracts/terminal-failures";
import {
  ACKNOWLEDGE_BYTES,
  type ClientFrame,
  MOST_FRAME_BYTES,
  type ReadinessStep,
  readServerFrame,
  type ServerFrame,
  type Size,
  TERMINAL_PROTOCOL,
  TOKEN_PROTOCOL,
} from "@holdfast/contracts/terminal-frames";
import WebSocket from "ws";
import { failureSeen, failureTold, type TerminalFailure, withHop } from "./failure.ts";
import type { GatewayAccess } from "./gateway-access.ts";

export type Ending =
  | { exit: { code: number | null; signal: string | null } }
  | { failure: TerminalFailure }
  | "lost";

export type Connection = {
  sessionId: string;
  /** Of the gateway. */
  url: string;
  /** Where in the shell's output the next byte stands. */
  offset(): number;
  send(bytes: Buffer, sent?: () => void): void;
  /** Bytes that the network has not taken yet. */
  waiting(): number;
  resize(size: Size): void;
  /** The shell goes on. */
  close(): void;
  ended: Promise<Ending>;
};

export type ConnectOptions = {
  client: Client;
  gateway: GatewayAccess;
  allocationId: string;
  /** A shell that is there, and how much of its output is known here. */
  resume?: { sessionId: string; offset?: number };
  size(): Size;
  onStep(step: ReadinessStep): void;
  /** `done` when somebody has got it: then more may come. */
  onOutput(bytes: Buffer, done: () => void): void;
  signal: AbortSignal;
};

type ClientFailureCode = (typeof clientFailureCodes)[number];

/** Beyond what the server promises: its answer has to travel too. */
const GRACE_MS = 3_000;
const PING_EVERY_MS = 15_000;
/** So many pings without an answer, and nobody is there. */
const MOST_SILENT_PINGS = 3;

/** Answers when the shell is there; what comes of it stands in `ended`. */
export async function connectTerminal(options: ConnectOptions): Promise<Connection> {
  const { client, gateway, resume } = options;
  const granted = await client(createTerminalToken, {
    params: { allocation_id: options.allocationId },
    body: { session_id: resume?.sessionId, offset: resume?.offset },
    signal: options.signal,
  }).catch((error: unknown) => Promise.reject(withHop(error)));
  const correlationId = granted.correlation_id;
  const deadlineMs = granted.deadline_seconds * 1000 + GRACE_MS;
  const socket = gateway.dial(granted.url, {
    protocols: [TERMINAL_PROTOCOL, `${TOKEN_PROTOCOL}${granted.token}`],
    handshakeTimeout: deadlineMs,
    maxPayload: MOST_FRAME_BYTES,
  });
  socket.binaryType = "nodebuffer";
  const opened = Promise.withResolvers<void>();
  const ready = Promise.withResolvers<Extract<ServerFrame, { type: "ready" }>>();
  const ended = Promise.withResolvers<Ending>();
  // Whoever gave up before has no use for them.
  for (const { promise } of [opened, ready]) promise.catch(() => undefined);

  const tell = (frame: ClientFrame) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame));
  };
  // From every `ready` on anew: there is a second one where output of the shell was lost on the way.
  let count = countFrom(0);
  const acknowledge = (bytes: number) => tell({ type: "ack", bytes });
  let silentPings = 0;
  const alive = setInterval(() => {
    silentPings += 1;
    if (silentPings > MOST_SILENT_PINGS) socket.terminate();
    else tell({ type: "ping" });
  }, PING_EVERY_MS);

  socket.once("open", () => {
    tell({ type: "resize", ...options.size() });
    opened.resolve();
  });
  socket.once("error", opened.reject);
  socket.on("error", () => undefined);
  socket.once("close", () => {
    clearInterval(alive);
    ended.resolve("lost");
    ready.reject(new Error("the connection was closed before the shell was there"));
  });
  socket.on("message", (data: Buffer, isBinary: boolean) => {
    silentPings = 0;
    if (isBinary) {
      const counted = count;
      counted.received += data.length;
      options.onOutput(data, () => {
        if (counted === count) dealtWith(counted, data.length, acknowledge);
      });
      return;
    }
    const frame = readServerFrame(data.toString("utf8"));
    switch (frame?.type) {
      case "status":
        return options.onStep(frame.step);
      case "ready":
        count = countFrom(frame.offset);
        return ready.resolve(frame);
      case "exit":
        return ended.resolve({ exit: { code: frame.code, signal: frame.signal } });
      case "error": {
        const failure = failureTold(frame);
        ready.reject(failure);
        ended.resolve({ failure });
        return;
      }
    }
  });

  const seen = async (code: ClientFailureCode, detail: string): Promise<never> => {
    await client(reportTerminalFailure, {
      params: { terminal_id: granted.session_id },
      body: { code, detail },
      correlationId,
    }).catch(() => undefined);
    throw failureSeen(code, { correlationId, detail });
  };
  const giveUp = () => socket.terminate();
  options.signal.addEventListener("abort", giveUp, { once: true });
  const deadline = setTimeout(() => ready.reject(new Late()), deadlineMs);
  try {
    await opened.promise.catch(async (error: Error) => {
      if (options.signal.aborted) throw error;
      const reached = await gateway.answers(granted.url);
      return seen(reached ? "terminal_gateway_upgrade_failed" : "terminal_public_route_missing", error.message);
    });
    const { session_id: sessionId } = await ready.promise.catch((error: Error) => {
      if (options.signal.aborted || "code" in error) throw error;
      if (error instanceof Late) return seen("terminal_ui_connecting_stuck", error.message);
      return seen("terminal_gateway_upgrade_failed", error.message);
    });
    return {
      sessionId,
      url: granted.url,
      offset: () => count.offset + count.received,
      send: (bytes, sent) => {
        if (socket.readyState === WebSocket.OPEN) socket.send(bytes, () => sent?.());
      },
      waiting: () => socket.bufferedAmount,
      resize: (size) => tell({ type: "resize", ...size }),
      close: () => {
        socket.close(1000);
      },
      ended: ended.promise,
    };
  } catch (error) {
    socket.terminate();
    throw error;
  } finally {
    clearTimeout(deadline);
    options.signal.removeEventListener("abort", giveUp);
  }
}

type Count = { offset: number; received: number; dealtWith: number; acknowledged: number };

function countFrom(offset: number): Count {
  return { offset, received: 0, dealtWith: 0, acknowledged: 0 };
}

function dealtWith(count: Count, bytes: number, acknowledge: (bytes: number) => void): void {
  count.dealtWith += bytes;
  if (count.dealtWith - count.acknowledged < ACKNOWLEDGE_BYTES) return;
  count.acknowledged = count.dealtWith;
  acknowledge(count.dealtWith);
}

class Late extends Error {
  constructor() {
    super("no frame said how it ended");
  }
}
