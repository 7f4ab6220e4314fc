// Counts what the terminal has dealt with, and when to say so: one credit from here to the node.

import { ACKNOWLEDGE_BYTES } from "@holdfast/contracts/terminal-frames";

export type Acknowledging = {
  /** So many more are done; the answer is what to acknowledge now, if anything. */
  done(bytes: number): number | undefined;
};

/** Half of what is allowed, so that the node hears of one chunk while the next is on its way. */
const SAY_AT_BYTES = ACKNOWLEDGE_BYTES / 2;

export function acknowledging(): Acknowledging {
  let total = 0;
  let said = 0;
  return {
    done(bytes) {
      total += bytes;
      if (total - said < SAY_AT_BYTES) return undefined;
      said = total;
      return total;
    },
  };
}
