// How long the next poll waits for the results of the tasks from the last one. Results of short tasks are sent
// first, over the same connection; a longer task does not delay the poll.

export type ResultWait = {
  /** Resolves when nothing is held any more, or when it is not worth waiting longer. */
  sent(withinMs: number): Promise<void>;
  /** A result was settled. */
  settled(): void;
  /** Delivery failed: unsettled results are retried at an unknown time. */
  postponed(): void;
};

/**
 * Only for results that are being sent: a parallel poll would need a second connection. A server that takes this long is
 * busy with a whole fleet, and a second handshake of every node would add to that.
 */
const ON_THEIR_WAY_MS = 5_000;

export function createResultWait(counts: () => { held: number; unsent: number }): ResultWait {
  let end: (() => void) | undefined;
  const settled = () => {
    if (counts().held === 0) end?.();
  };
  return {
    settled,
    postponed: () => end?.(),
    sent: (withinMs) =>
      new Promise((resolve) => {
        let timer = setTimeout(() => {
          const { held, unsent } = counts();
          if (held === unsent) timer = setTimeout(() => end?.(), ON_THEIR_WAY_MS);
          else end?.();
        }, withinMs);
        end = () => {
          clearTimeout(timer);
          end = undefined;
          resolve();
        };
        settled();
      }),
  };
}
