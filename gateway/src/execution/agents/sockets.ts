// The sockets of agents: a WebSocket server of their own, without compression. All sockets share the same few functions.

import { MOST_FRAME_BYTES } from "@holdfast/contracts/terminal/frames";
import { type WebSocket, WebSocketServer } from "ws";
import { MOST_UNSENT_BYTES } from "../../listeners/forward.ts";
import { type AgentSession, AgentSocket } from "./session.ts";

export type SocketHandlers = {
  onFrame(session: AgentSession, data: Buffer, isBinary: boolean): void;
  onClose(session: AgentSession, code: number): void;
};

export type AgentSockets = {
  server: WebSocketServer;
  /** From here on its frames are handled. */
  attach(session: AgentSession): void;
};

/** How long a peer that should close may take. Not among ws's types. */
const closing = { closeTimeout: 5_000 };

export function agentSockets(handlers: SocketHandlers): AgentSockets {
  const server = new WebSocketServer({
    noServer: true,
    WebSocket: AgentSocket,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MOST_FRAME_BYTES,
    autoPong: false,
    ...closing,
  });

  function onMessage(this: WebSocket, data: Buffer, isBinary: boolean) {
    const session = sessionOf(this);
    if (session && this.readyState === this.OPEN) handlers.onFrame(session, data, isBinary);
  }
  function onPing(this: WebSocket, data: Buffer) {
    const session = sessionOf(this);
    if (session) session.heardAt = Date.now();
    if (this.bufferedAmount <= MOST_UNSENT_BYTES) this.pong(data);
  }
  function onClose(this: WebSocket, code: number) {
    const session = sessionOf(this);
    if (session) handlers.onClose(session, code);
  }
  // ws closes the socket after each error, and informs the peer if possible.
  function onError() {}

  return {
    server,
    attach(session) {
      const { socket } = session;
      socket.session = session;
      socket.on("message", onMessage);
      socket.on("ping", onPing);
      socket.on("close", onClose);
      socket.on("error", onError);
    },
  };
}

function sessionOf(socket: WebSocket): AgentSession | undefined {
  return (socket as AgentSocket).session;
}
