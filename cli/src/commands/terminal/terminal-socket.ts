// One WebSocket to the gateway: frames both ways, and the credit that lets more output come. What its
// end means, and whether to come back, is for others to decide.

import {
  ACKNOWLEDGE_BYTES,
  type ClientFrame,
  type InputPlace,
  type NodeAway,
  type ReadinessStep,
  readServerFrame,
  type ServerFrame,
  type Size,
} from "@holdfast/contracts/terminal-frames";
import type { TerminalInput } from "@holdfast/contracts/terminal-input";
import { createLiveness, PING_MS } from "@holdfast/contracts/terminal-liveness";
import WebSocket from "ws";
import { failureTold, type TerminalFailure } from "./failure.ts";

export type Ending =
  | { exit: { code: number | null; signal: string | null } }
  | { failure: TerminalFailure }
  /** The connection broke, and nobody said why. */
  | "lost"
  /** The gateway did not answer any more. */
  | "unresponsive";

export type Hears = {
  onStep(step: ReadinessStep): void;
  /** `done` when somebody has got it: then more may come. */
  onOutput(bytes: Buffer, done: () => void): void;
  /** The gateway answers, but the node does not; undefined: it does again. */
  onNodeAway(away: { cause: NodeAway; since: string } | undefined): void;
  /** What is typed; it outlives this connection. */
  input: TerminalInput<Buffer>;
  /** The shell confirmed some of it. */
  onConfirmed(): void;
};

type Ready = Extract<ServerFrame, { type: "ready" }>;

export type TerminalSocket = {
  opened: Promise<void>;
  /** Rejects with what the gateway told, or without a code when the connection ended before. */
  ready: Promise<Ready>;
  ended: Promise<Ending>;
  /** Where in the shell's output the next byte stands. */
  offset(): number;
  /** Sends what may be sent of the input. */
  sendInput(): void;
  resize(size: Size): void;
  /** The shell goes on. */
  close(): void;
  terminate(): void;
};

/** The connection is open, and nothing comes over it. */
export class GatewaySilent extends Error {
  override message = "the connection opened, but the gateway did not answer";
}

const CLOSE_WITHIN_MS = 1_000;
const CLOSE_NORMAL = 1000;

export function overSocket(socket: WebSocket, size: () => Size, hears: Hears): TerminalSocket {
  const opened = Promise.withResolvers<void>();
  const ready = Promise.withResolvers<Ready>();
  const ended = Promise.withResolvers<Ending>();
  // Whoever gave up before has no use for them.
  for (const { promise } of [opened, ready]) promise.catch(() => undefined);
  socket.binaryType = "nodebuffer";
  // Not when the one before closes: that may be later than the first input over this one.
  hears.input.disconnect();

  const tell = (frame: ClientFrame) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame));
  };
  let credit = creditFrom(0);
  let arrived = 0;
  let unresponsive = false;
  let asking: NodeJS.Timeout | undefined;
  const askRegularly = () => {
    const liveness = createLiveness(performance.now());
    asking = setInterval(() => {
      if (liveness.tick(performance.now(), arrived) === "ask") return tell({ type: "ping" });
      unresponsive = true;
      socket.terminate();
    }, PING_MS);
  };

  const take = (bytes: Buffer) => {
    const own = credit;
    own.received += bytes.length;
    hears.onOutput(bytes, () => {
      if (own === credit && spend(own, bytes.length)) tell({ type: "ack", bytes: own.acknowledged });
    });
  };
  const sendInput = () => {
    for (;;) {
      const piece = socket.readyState === WebSocket.OPEN ? hears.input.next() : undefined;
      if (piece === undefined) return;
      socket.send(piece);
    }
  };
  const placeInput = (place: InputPlace | undefined) => {
    const answer = hears.input.place(place);
    if (answer) tell(answer);
    sendInput();
  };
  const obey = (frame: ServerFrame | undefined) => {
    switch (frame?.type) {
      case "status":
        // What failed is in the error that follows.
        return frame.step === "failed" ? undefined : hears.onStep(frame.step);
      case "ready":
        // There is a second one where output of the shell was lost on the way.
        credit = creditFrom(frame.offset);
        placeInput(frame.input);
        hears.onNodeAway(undefined);
        return ready.resolve(frame);
      case "unresponsive":
        return hears.onNodeAway({ cause: frame.cause, since: frame.since });
      case "responsive":
        return hears.onNodeAway(undefined);
      case "input":
        return placeInput(frame);
      case "ack":
        hears.input.acknowledge(frame.bytes);
        sendInput();
        return hears.onConfirmed();
      case "exit":
        return ended.resolve({ exit: { code: frame.code, signal: frame.signal } });
      case "error": {
        const failure = failureTold(frame);
        ready.reject(failure);
        return ended.resolve({ failure });
      }
    }
  };

  socket.once("open", () => {
    askRegularly();
    tell({ type: "resize", ...size() });
    opened.resolve();
  });
  socket.on("error", opened.reject);
  socket.once("close", () => {
    clearInterval(asking);
    ended.resolve(unresponsive ? "unresponsive" : "lost");
    ready.reject(
      unresponsive ? new GatewaySilent() : new Error("the connection was closed before the shell was there"),
    );
  });
  socket.on("message", (data: Buffer, isBinary: boolean) => {
    arrived += 1;
    if (isBinary) take(data);
    else obey(readServerFrame(data.toString("utf8")));
  });

  return {
    opened: opened.promise,
    ready: ready.promise,
    ended: ended.promise,
    offset: () => credit.offset + credit.received,
    sendInput,
    resize: (now) => tell({ type: "resize", ...now }),
    close: () => {
      socket.close(CLOSE_NORMAL);
      setTimeout(() => socket.terminate(), CLOSE_WITHIN_MS).unref();
    },
    terminate: () => socket.terminate(),
  };
}

type Credit = { offset: number; received: number; dealtWith: number; acknowledged: number };

function creditFrom(offset: number): Credit {
  return { offset, received: 0, dealtWith: 0, acknowledged: 0 };
}

/** Whether it is time to acknowledge. */
function spend(credit: Credit, bytes: number): boolean {
  credit.dealtWith += bytes;
  if (credit.dealtWith - credit.acknowledged < ACKNOWLEDGE_BYTES) return false;
  credit.acknowledged = credit.dealtWith;
  return true;
}
