// What the sockets of clients and nodes have in common: they are WebSockets of this server without
// compression, an unresponsive peer is disconnected, and none can make the gateway buffer without limit.

import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { MOST_FRAME_BYTES } from "@holdfast/contracts/terminal/frames";
import { createLiveness, type Liveness, PING_MS } from "@holdfast/contracts/terminal/liveness";
import { type ServerOptions, WebSocket, WebSocketServer } from "ws";
import { MOST_UNSENT_BYTES } from "./forward.ts";

/** How long a peer that should close may take, and what it has not read is kept. Not among ws's types. */
const closing = { closeTimeout: 10_000 };

export type Watched = {
  /** In milliseconds of `Date.now()`, once it was disconnected because it did not respond. */
  unresponsiveSince(): number | undefined;
};

type Peer = { liveness: Liveness; below: Socket; unresponsiveSince: number | undefined };
/** Emitted when a message is over the limit, while the reason can still be sent to the peer; the listener closes the socket. */
export const TOO_LARGE = "too_large";
export const CLOSE_TOO_LARGE = 1009;

class PeerSocket extends WebSocket {
  #isReported = false;

  /** ws itself calls it as soon as it has read the length of a message that is over the limit, and reads no further. */
  override close(code?: number, reason?: string | Buffer): void {
    if (code === CLOSE_TOO_LARGE && !this.#isReported && this.readyState === WebSocket.OPEN) {
      this.#isReported = true;
      if (this.emit(TOO_LARGE)) return;
    }
    super.close(code, reason);
  }
}

export type PeerSockets = {
  server: WebSocketServer;
  /** `below` is what the WebSocket runs on. */
  watch(socket: WebSocket, below: Duplex): Watched;
  size(): number;
  /** Those still connected after that time are disconnected. */
  stop(withinMs: number): Promise<void>;
};

export function peerSockets(
  options: Pick<ServerOptions, "handleProtocols"> & { pingMs?: number } = {},
): PeerSockets {
  const { pingMs = PING_MS, ...more } = options;
  const server = new WebSocketServer({
    noServer: true,
    WebSocket: PeerSocket,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MOST_FRAME_BYTES,
    autoPong: false,
    ...closing,
    ...more,
  });
  const peers = new Map<WebSocket, Peer>();
  let timer: NodeJS.Timeout | undefined;
  let emptied: (() => void) | undefined;

  const askAll = () => {
    const now = performance.now();
    for (const [socket, peer] of peers) {
      // A socket that is not being read cannot have responded.
      if (socket.isPaused) peer.liveness.excuse(now);
      else if (peer.liveness.tick(now, peer.below.bytesRead) === "ask") socket.ping();
      else {
        peer.unresponsiveSince = Date.now() - (now - peer.liveness.silentSince());
        socket.terminate();
      }
    }
  };

  return {
    server,
    watch(socket, below) {
      const peer: Peer = {
        liveness: createLiveness(performance.now()),
        below: below as Socket,
        unresponsiveSince: undefined,
      };
      peers.set(socket, peer);
      timer ??= setInterval(askAll, pingMs).unref();
      socket.on("ping", (data) => {
        if (socket.bufferedAmount <= MOST_UNSENT_BYTES) socket.pong(data);
      });
      // ws closes the socket after each error, and informs the peer if possible.
      socket.on("error", () => undefined);
      socket.on("close", () => {
        peers.delete(socket);
        if (peers.size > 0) return;
        clearInterval(timer);
        timer = undefined;
        emptied?.();
      });
      return { unresponsiveSince: () => peer.unresponsiveSince };
    },
    size: () => peers.size,
    async stop(withinMs) {
      if (peers.size > 0) {
        await new Promise<void>((resolve) => {
          const late = setTimeout(resolve, withinMs);
          emptied = () => {
            clearTimeout(late);
            resolve();
          };
        });
      }
      for (const socket of peers.keys()) socket.terminate();
      server.close();
    },
  };
}
