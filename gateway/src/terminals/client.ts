// A client's socket as a session sees it: who types, what was sent to it, how it ends.

import { type TerminalFailureCode, terminalFailures } from "@holdfast/contracts/reasons/terminal";
import {
  type ClientFrame,
  readClientFrame,
  type ServerFrame,
  type Size,
} from "@holdfast/contracts/terminal/frames";
import type { WebSocket } from "ws";
import { forward } from "../listeners/forward.ts";
import { TOO_LARGE } from "../listeners/peer-sockets.ts";

/** RFC 6455 leaves 4000–4999 to applications. The reason is the error's code. */
const closeCodes = { ended: 1000, retryable: 4000, final: 4001 };
const MOST_CONTROL_BYTES = 1024;

export type ClientHandlers = {
  onFrame(frame: Exclude<ClientFrame, { type: "ping" }>): void;
  onBytes(data: Buffer): void;
  onTooLarge(): void;
  onLeft(): void;
};

export type Client = {
  readonly socket: WebSocket;
  readonly connectedAt: number;
  /** Undefined: it does not keep its input until that is acknowledged. */
  readonly writer: string | undefined;
  /** When its token was requested, once that is known: steps are measured from there. */
  requestedAt: number | undefined;
  size: Size | undefined;
  handlers: ClientHandlers | undefined;
  /** Bytes that it sent before there was a session to pass them to. */
  early: number;
  /** A message over the limit came before there was a session. */
  sentTooLarge: boolean;
  isOpen(): boolean;
  send(frame: ServerFrame): void;
  fail(code: TerminalFailureCode, why: { detail: string | null; correlationId: string }): void;
  end(): void;
};

export function clientOf(socket: WebSocket, writer: string | undefined): Client {
  const client: Client = {
    socket,
    connectedAt: Date.now(),
    writer,
    requestedAt: undefined,
    size: undefined,
    handlers: undefined,
    early: 0,
    sentTooLarge: false,
    isOpen: () => socket.readyState === socket.OPEN,
    send: (frame) => forward(JSON.stringify(frame), socket, socket),
    fail(code, { detail, correlationId: correlation_id }) {
      const { hop, owner, action, retryable, message } = terminalFailures[code];
      client.handlers = undefined;
      const at = Date.now();
      const ms = Math.max(0, at - (client.requestedAt ?? client.connectedAt));
      client.send({ type: "status", step: "failed", at: new Date(at).toISOString(), ms, correlation_id });
      client.send({
        type: "error",
        code,
        hop,
        message: detail ?? message,
        action,
        owner,
        retryable,
        correlation_id,
      });
      socket.close(retryable ? closeCodes.retryable : closeCodes.final, code);
    },
    end() {
      client.handlers = undefined;
      socket.close(closeCodes.ended, "exit");
    },
  };
  socket.on("message", (data: Buffer, isBinary: boolean) => {
    if (isBinary) {
      if (client.handlers) client.handlers.onBytes(data);
      else client.early += data.length;
      return;
    }
    const frame = data.length > MOST_CONTROL_BYTES ? undefined : readClientFrame(data.toString());
    if (frame?.type === "ping") return client.send({ type: "pong" });
    if (frame?.type === "resize") client.size = { cols: frame.cols, rows: frame.rows };
    if (frame) client.handlers?.onFrame(frame);
  });
  socket.on(TOO_LARGE, () => {
    if (client.handlers) client.handlers.onTooLarge();
    else client.sentTooLarge = true;
  });
  socket.on("close", () => client.handlers?.onLeft());
  return client;
}
