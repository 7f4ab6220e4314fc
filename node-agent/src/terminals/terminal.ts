// One open terminal: a holder on one side, the gateway's stream on the other, bytes are forwarded unchanged.
// The stream may break and is reconnected; the terminal ends with its holder.

import {
  MOST_FRAME_BYTES,
  MOST_INPUT_BYTES,
  type NodeFrame,
  readGatewayFrame,
  readNodeFrame,
} from "@holdfast/contracts/terminal/frames";
import { signalIfAlive } from "@holdfast/kit/processes";
import type { Description } from "../drivers/pty/driver.ts";
import type { Control } from "../drivers/pty/messages.mjs";
import { type Redial, startRedial } from "./redial.ts";
import type { Holder } from "./spare-holders.ts";
import type { Stream } from "./stream.ts";

type Shell = Description & { type: "shell" };

export type Terminal = {
  readonly sessionId: string;
  /** Resolves with its first connection to the gateway; undefined: it ended before that. */
  readonly joined: Promise<Shell | undefined>;
  /** Whether it is connected to the gateway. */
  connected(): boolean;
  /** Its first connection to the gateway, which reports that the shell runs. */
  join(stream: Stream, kept: Shell): void;
  /** Retries until it is connected, or for as long as a shell may be disconnected. */
  reconnect(): void;
  /** Ends the shell; resolves when all its processes are gone. */
  end(): Promise<void>;
  /** The agent stops; the shell keeps running. */
  leave(): void;
  check(): void;
};

export type TerminalOptions = {
  sessionId: string;
  holder: Holder;
  detachedMs: number;
  /** How long its holder may take to end when it is asked to. */
  obeyMs?: number | undefined;
  /** Rejects with a StreamFailure. */
  dial: (signal: AbortSignal) => Promise<Stream>;
  /** Called with a failure that its user should see. */
  onFailure: (code: string, detail: string) => void;
  /** Before it dials the gateway again. */
  onRetry: (code: string, detail: string) => void;
  /** Its holder has ended. */
  onEnded: () => Promise<void>;
};

/** The holder waits five seconds for its shell. A holder that does not react was stopped by its tenant, and is killed. */
const OBEY_MS = 8_000;
const ANSWER_MS = 5_000;
/** How long a gateway may take to request the last output of a shell that has ended. */
const LAST_WISH_MS = 5_000;

export function createTerminal(options: TerminalOptions): Terminal {
  const { sessionId, holder } = options;
  const { connection } = holder;
  const [over, firstJoined] = [Promise.withResolvers<void>(), Promise.withResolvers<Shell | undefined>()];
  let stream: Stream | undefined;
  /** Output after this point belongs to no attachment of this stream. */
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
  /** Only a gateway that closes the stream in return has certainly received the exit. */
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
    firstJoined.resolve(undefined);
    clearTimeout(timer);
    redial?.stop("the terminal ended");
    if (!exit && !ending) {
      const message = "The process that held this terminal on the node was ended.";
      stream?.send({ type: "error", code: "terminal_pty_failed", message });
      options.onFailure("terminal_pty_failed", message);
    }
    stream?.close();
    // The holder may run without a connection, and could never be reached again.
    signalIfAlive(holder.process, "SIGKILL");
    void options.onEnded().then(over.resolve, over.resolve);
  };
  /** By the process id that the agent itself recorded: what a holder reports is not trusted. */
  const insist = () => {
    ending = true;
    clearTimeout(timer);
    redial?.stop("the terminal ends");
    timer = setTimeout(() => signalIfAlive(holder.process, "SIGKILL"), options.obeyMs ?? OBEY_MS);
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

  const join = (joined: Stream, kept: Shell) => {
    firstJoined.resolve(kept);
    stream = joined;
    attached = false;
    joined.send({ type: "hello", offset: kept.offset, end: kept.end });
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
    joined: firstJoined.promise,
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

/** What a holder sends is not trusted: only these reach the gateway, and acknowledgements only for its attachment. */
function isForGateway(frame: NodeFrame, attached: boolean): boolean {
  switch (frame.type) {
    case "attached":
    case "paused":
      return true;
    case "ack":
      return attached;
    case "error":
      return frame.code === "terminal_input_overflow" || frame.code === "terminal_vm_ended";
    default:
      return false;
  }
}
