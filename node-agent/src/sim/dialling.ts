// Lets the agents of a process dial a few at a time. Real ones are on machines of their own: here one that is connected
// already must not wait until thousands of others have made their keys.

/** In one turn of the event loop. */
const PER_TURN = 4;

/** Resolves when it is one's turn. */
export type Dialling = () => Promise<void>;

export function createDialling(): Dialling {
  let waiting: (() => void)[] = [];
  let scheduled = false;
  const turn = () => {
    scheduled = false;
    const next = waiting.slice(0, PER_TURN);
    waiting = waiting.slice(PER_TURN);
    for (const go of next) go();
    schedule();
  };
  const schedule = () => {
    if (scheduled || waiting.length === 0) return;
    scheduled = true;
    setImmediate(turn);
  };
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      schedule();
    });
}
