// One open terminal: a holder on one side, the gateway's stream on the other, bytes passed on as they are.
// The stream may break and is dialled again; the holder is the terminal, and with it everything ends.

import {
  MOST_FRAME_BYTES,
  MOST_INPUT_BYTES,
  type NodeFrame,
  readGatewayFrame,
  readNodeFrame,
} from "@holdfast/contracts/terminal-frames";
import { signalIfAlive } from "@holdfast/kit/processes";
import type { Control } from "../drivers/pty/messages.mjs";
import { type Redial, startRedial } from "./redial.ts";
import type { Holder } from "./spare-holders.ts";
import type { Stream } from "./stream.ts";

export type Terminal = {
  readonly sessionId: string;
  /** Whether the gateway has it now. */
  connected(): boolean;
  /** Its first way to the gateway; it reports to the gateway that the shell runs. */
  join(stream: Stream, kept: { offset: number; end: number }): void;
  /** Dials until the gateway has it, or for as long as a shell may be without. */
  reconnect(): void;
  /** Ends the shell; resolves when nothing of it is left. */
  end(): Promise<void>;
  /** The agent ends; the shell goes on. */
  leave(): void;
  check(): void;
};

export type TerminalOptions = {
  sessionId: string;
  holder: Holder;
  detachedMs: number;
  /** Rejects with a StreamFailure. */
  dial: (signal: AbortSignal) => Promise<Stream>;
  /** It failed in a way that its user should know of. */
  onFailure: (code: string, detail: string) => void;
  /** Before it dials the gateway again. */
  onRetry: (code: string, detail: string) => void;
  /** Its holder has ended. */
  onEnded: () => Promise<void>;
};

/** The holder gives a shell five seconds. One that does not obey is stopped by its tenant, and is killed. */
const OBEY_MS = 8_000;
const ANSWER_MS = 5_000;
/** How long a gateway may take to ask for the last output of a shell that has ended. */
const LAST_WISH_MS = 5_000;

export function createTerminal(options: TerminalOptions): Terminal {
  const { sessionId, holder } = options;
  const { connection } = holder;
  const over = Promise.withResolvers<void>();
  let stream: Stream | undefined;
  /** Output behind this point is of no attachment of this stream. */
  let attached = false;
  let exit: (NodeFrame & { type: "exit" }) | undefined;
  /** The exit was sent over the present stream. */
  let exitSent = false;
  let ending = false;
  let gone = false;
  let timer: NodeJS.Timeout | undefined;
  let redial: Redial | undefined;

  const onControl = (message: Control) => {
    const frame = readNodeFrame(JSON.stringify(message));
    if (frame?.type === "exit") {
      exit = frame;
      if (ending) letGo();
      else if (stream) conclude(stream);
      return;
    }
    if (frame?.type === "attached") attached = true;
    if (frame && isForGateway(frame, attached)) stream?.send(frame);
  };
  /** Only a gateway that closes the stream in return has surely received the end. */
  const conclude = (to: Stream) => {
    if (exit) to.send(exit);
    exitSent = true;
    to.close();
  };
  const letGo = () => {
    if (exit && !exitSent) stream?.send(exit);
    connection.send({ type: "done" });
    insist();
  };
  const onHolderGone = () => {
    if (gone) return;
    gone = true;
    clearTimeout(timer);
    redial?.stop("the terminal ended");
    if (!exit && !ending) {
      const message = "The process that held this terminal on the node was ended.";
      stream?.send({ type: "error", code: "terminal_pty_failed", message });
      options.onFailure("terminal_pty_failed", message);
    }
    stream?.close();
    // Its connection may have broken without its end: nobody could reach it any more.
    signalIfAlive(holder.process, "SIGKILL");
    void options.onEnded().then(over.resolve, over.resolve);
  };
  /** By its process, which the agent itself wrote down: what a holder says is a tenant's word. */
  const insist = () => {
    ending = true;
    clearTimeout(timer);
    redial?.stop("the terminal ends");
    timer = setTimeout(() => signalIfAlive(holder.process, "SIGKILL"), OBEY_MS);
  };
  const end = () => {
    if (!gone && !ending) {
      connection.resume();
      connection.send({ type: "close" });
      insist();
      if (exit) letGo();
    }
    return over.promise;
  };

  connection.listen({
    onBytes(bytes) {
      if (!stream || !attached) return;
      stream.sendBytes(bytes);
      if (stream.congested()) connection.pause();
    },
    onControl,
    onGone: onHolderGone,
  });

  const join = (joined: Stream, { offset, end: newest }: { offset: number; end: number }) => {
    stream = joined;
    attached = false;
    joined.send({ type: "hello", offset, end: newest });
    joined.listen({
      onBytes(bytes) {
        if (connection.sendBytes(bytes, MOST_INPUT_BYTES + MOST_FRAME_BYTES)) return;
        const message = "The terminal does not take its input any more; it is ended.";
        joined.send({ type: "error", code: "terminal_input_overflow", message });
        options.onFailure("terminal_input_overflow", message);
        void end();
      },
      onText(text) {
        const frame = readGatewayFrame(text);
        if (frame?.type === "close") void end();
        else if (frame) connection.send(frame);
      },
      onRoom: () => connection.resume(),
      onGone(closed) {
        if (stream !== joined) return;
        stream = undefined;
        if (gone) return;
        if (exitSent && closed) return letGo();
        exitSent = false;
        connection.resume();
        connection.send({ type: "detach" });
        if (!ending) reconnect();
      },
    });
    if (exit) timer = setTimeout(() => conclude(joined), LAST_WISH_MS);
  };

  const reconnect = () => {
    redial = startRedial({
      detachedMs: options.detachedMs,
      dial: options.dial,
      describe: () => connection.describe(ANSWER_MS),
      onConnected: join,
      onRetry: options.onRetry,
      onAbandoned(why) {
        if (why !== undefined)
          options.onFailure(
            "terminal_stream_lost",
            `the shell ends, because there is no way between it and the gateway: ${why}`,
          );
        void end();
      },
    });
  };

  return {
    sessionId,
    connected: () => stream !== undefined,
    join,
    reconnect,
    end,
    leave() {
      ending = true;
      clearTimeout(timer);
      redial?.stop("the agent stops");
      connection.leave();
      const left = stream;
      stream = undefined;
      left?.close();
    },
    check: () => stream?.check(),
  };
}

/** What a holder says is a tenant's word: only these reach the gateway, and acknowledgements only of its attachment. */
function isForGateway(frame: NodeFrame, attached: boolean): boolean {
  switch (frame.type) {
    case "attached":
    case "paused":
      return true;
    case "ack":
      return attached;
    case "error":
      return frame.code === "terminal_input_overflow";
    default:
      return false;
  }
}
