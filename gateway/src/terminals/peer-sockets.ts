// What the sockets of clients and nodes have in common: they are WebSockets of this server without
// compression, a peer that no longer answers is let go, and none can make us keep answers it does not read.

import { MOST_FRAME_BYTES } from "@holdfast/contracts/terminal-frames";
import { type ServerOptions, type WebSocket, WebSocketServer } from "ws";
import { MOST_UNSENT_BYTES } from "./pass.ts";

const PING_MS = 30_000;
/** For a peer that was told to close and does not; what it has not read is kept so long. Not among ws's types. */
const closing = { closeTimeout: 10_000 };

export type PeerSockets = {
  server: WebSocketServer;
  watch(socket: WebSocket): void;
  size(): number;
  /** Those that are still there after a while are cut off. */
  stop(withinMs: number): Promise<void>;
};

export function peerSockets(
  options: Pick<ServerOptions, "handleProtocols"> & { pingMs?: number } = {},
): PeerSockets {
  const { pingMs = PING_MS, ...more } = options;
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MOST_FRAME_BYTES,
    autoPong: false,
    ...closing,
    ...more,
  });
  const answered = new Map<WebSocket, boolean>();
  let emptied: (() => void) | undefined;

  const timer = setInterval(() => {
    for (const [socket, alive] of answered) {
      // One that we do not read cannot have answered.
      if (socket.isPaused) continue;
      if (!alive) {
        socket.terminate();
        continue;
      }
      answered.set(socket, false);
      socket.ping();
    }
  }, pingMs);
  timer.unref();

  return {
    server,
    watch(socket) {
      answered.set(socket, true);
      socket.on("pong", () => answered.set(socket, true));
      socket.on("ping", (data) => {
        if (socket.bufferedAmount <= MOST_UNSENT_BYTES) socket.pong(data);
      });
      // It closes itself behind each, and says so to the peer where it can.
      socket.on("error", () => undefined);
      socket.on("close", () => {
        answered.delete(socket);
        if (answered.size === 0) emptied?.();
      });
    },
    size: () => answered.size,
    async stop(withinMs) {
      clearInterval(timer);
      if (answered.size > 0) {
        await new Promise<void>((resolve) => {
          const late = setTimeout(resolve, withinMs);
          emptied = () => {
            clearTimeout(late);
            resolve();
          };
        });
      }
      for (const socket of answered.keys()) socket.terminate();
      server.close();
    },
  };
}
