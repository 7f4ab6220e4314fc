// The sockets of agents: a WebSocket server of their own, without compression. A socket has no listeners: they would be the
// greater part of what an idle agent costs beside its connection.

import { MOST_FRAME_BYTES } from "@holdfast/contracts/terminal/frames";
import { WebSocket, WebSocketServer } from "ws";
import { MOST_UNSENT_BYTES } from "../../listeners/forward.ts";
import type { AgentSession } from "./session.ts";

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
  class AgentSocket extends WebSocket {
    session: AgentSession | undefined = undefined;

    override emit(event: string | symbol, ...args: unknown[]): boolean {
      const { session } = this;
      if (session === undefined) return super.emit(event, ...args);
      if (event === "message") {
        if (this.readyState === this.OPEN) handlers.onFrame(session, args[0] as Buffer, args[1] as boolean);
      } else if (event === "ping") {
        session.heardAt = Date.now();
        if (this.bufferedAmount <= MOST_UNSENT_BYTES) this.pong(args[0]);
      } else if (event === "close") {
        handlers.onClose(session, args[0] as number);
      }
      // After an error ws closes the socket, and informs the peer if possible.
      return true;
    }
  }

  return {
    server: new WebSocketServer({
      noServer: true,
      WebSocket: AgentSocket,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: MOST_FRAME_BYTES,
      autoPong: false,
      ...closing,
    }),
    attach(session) {
      (session.socket as AgentSocket).session = session;
    },
  };
}
