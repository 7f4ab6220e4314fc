// Counts output that was processed, and when to acknowledge it: one credit from the client to the PTY.

import { ACKNOWLEDGE_BYTES } from "@holdfast/contracts/terminal/frames";

export type OutputCredit = {
  /** So many more bytes were processed; returns the total to acknowledge now, if any. */
  processed(bytes: number): number | undefined;
};

export function createOutputCredit(): OutputCredit {
  let total = 0;
  let acknowledged = 0;
  return {
    processed(bytes) {
      total += bytes;
      if (total - acknowledged < ACKNOWLEDGE_BYTES) return undefined;
      acknowledged = total;
      return total;
    },
  };
}
