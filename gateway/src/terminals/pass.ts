// Passes a frame from one peer to the other. Credit between client and node keeps little on its way; this
// holds against a peer that ignores it, by not reading whoever sends more than the other takes.

import type { WebSocket } from "ws";

export const MOST_UNSENT_BYTES = 4 * 1024 * 1024;

const binaryFrame = { binary: true } as const;
const textFrame = { binary: false } as const;

export function pass(data: Buffer | string, from: WebSocket, to: WebSocket): void {
  const form = typeof data === "string" ? textFrame : binaryFrame;
  if (to.bufferedAmount <= MOST_UNSENT_BYTES) {
    to.send(data, form);
    return;
  }
  from.pause();
  // Called when all before it has left, and also when `to` is gone.
  to.send(data, form, () => from.resume());
}
