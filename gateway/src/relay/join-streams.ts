// Joins a node's socket with the one to the gateway that has its terminal. Whatever ends one of them ends the other in the
// same way: with the same close code, or with the time since when the node has not responded.

import type { WebSocket } from "ws";
import { forward } from "../listeners/forward.ts";
import { CLOSE_TOO_LARGE, TOO_LARGE, type Watched } from "../listeners/peer-sockets.ts";

export type Joined = {
  /** This gateway stops: the node connects to another one. */
  leave(): void;
};

/** The reason is a time, in milliseconds of `Date.now()`. */
const CLOSE_SILENT = 4408;
const CLOSE_RESTART = 1012;

export function joinStreams(streams: { node: WebSocket; watched: Watched; upstream: WebSocket }): Joined {
  const { node, watched, upstream } = streams;
  pass(node, upstream);
  pass(upstream, node);
  // The reason must reach the owner also if the node never confirms that it closes.
  node.on(TOO_LARGE, () => {
    upstream.close(CLOSE_TOO_LARGE);
    node.close(CLOSE_TOO_LARGE);
  });
  node.on("close", (code, reason) => {
    const silentSince = watched.unresponsiveSince();
    if (silentSince !== undefined) upstream.close(CLOSE_SILENT, String(Math.round(silentSince)));
    else closeAs(upstream, code, reason);
  });
  upstream.on("close", (code, reason) => {
    // The owner was lost: the node finds out by connecting again who has the terminal now.
    if (code === CLOSE_LOST) node.close(CLOSE_RESTART, "restart");
    else closeAs(node, code, reason);
  });
  upstream.resume();
  return {
    leave() {
      for (const socket of [node, upstream]) socket.close(CLOSE_RESTART, "restart");
    },
  };
}

/** At the owner: since when the node of a stream has not responded, as the gateway that passes it on has said. */
export function reportedSilence(socket: WebSocket): Watched["unresponsiveSince"] {
  let since: number | undefined;
  socket.on("close", (code, reason) => {
    const time = Number(reason.toString());
    if (code === CLOSE_SILENT && time > 0 && time <= Date.now()) since = time;
  });
  return () => since;
}

function pass(from: WebSocket, to: WebSocket): void {
  from.on("message", (data: Buffer, isBinary: boolean) => {
    if (to.readyState === to.OPEN) forward(isBinary ? data : data.toString(), from, to);
  });
}

const CLOSE_NO_CODE = 1005;
const CLOSE_LOST = 1006;

function closeAs(socket: WebSocket, code: number, reason: Buffer): void {
  if (code === CLOSE_LOST) socket.terminate();
  else if (code === CLOSE_NO_CODE) socket.close();
  else socket.close(code, reason);
}
