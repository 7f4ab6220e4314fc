// How long the next poll waits for the results of the tasks that the last one brought. Results of short tasks go
// first, over the same connection; a task that takes longer does not keep the poll waiting.

export type ResultWait = {
  /** Resolves when nothing is held any more, or when it is not worth waiting longer. */
  sent(withinMs: number): Promise<void>;
  /** Something was settled. */
  settled(): void;
  /** What is not settled will be tried again, nobody knows when. */
  postponed(): void;
};

/**
 * For results that are on their way, and nothing else: beside them the poll would need a second connection. A server
 * that takes this long has a whole fleet at work, and would have a second handshake of every node as well.
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
