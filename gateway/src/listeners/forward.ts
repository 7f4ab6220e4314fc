// Forwards a frame from one peer to the other. The credit between client and node limits the data in flight; this limits a
// peer that ignores it, by not reading from a peer that sends more than the other side accepts.

import type { WebSocket } from "ws";

export const MOST_UNSENT_BYTES = 4 * 1024 * 1024;

const binaryFrame = { binary: true } as const;
const textFrame = { binary: false } as const;

export function forward(data: Buffer | string, from: WebSocket, to: WebSocket): void {
  const form = typeof data === "string" ? textFrame : binaryFrame;
  if (to.bufferedAmount <= MOST_UNSENT_BYTES) {
    to.send(data, form);
    return;
  }
  from.pause();
  // Called when everything before it was sent, and also when `to` was closed.
  to.send(data, form, () => from.resume());
}
