// How page and command line come back to a shell after a loss: again and again with growing pauses, until the
// shell is there, somebody says that it is not, or the person stops.

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** Left to chance, so that the clients of one gateway do not return in step. */
const SPREAD = 0.25;
const ASKS_ANYWAY_EVERY = 4;

/** Before try `attempt`, counted from 1. `random` is a number in [0, 1). */
export function reconnectPauseMs(attempt: number, random: number = Math.random()): number {
  const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempt - 1, 30));
  return Math.round(longest * (1 - SPREAD * random));
}

/**
 * An attempt checks first that the gateway responds, because a token is useless without it. Some attempts call the api
 * regardless: the gateway may have another address by now.
 */
export const asksGatewayFirst = (attempt: number) => attempt % ASKS_ANYWAY_EVERY !== 0;
