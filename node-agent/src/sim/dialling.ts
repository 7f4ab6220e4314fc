// Limits how many agents of a process connect at a time. Unlike real agents they share a processor: one that is already
// connected must not wait until thousands of others have created their keys.

/** In one turn of the event loop. */
const PER_TURN = 4;

/** Resolves when the caller may connect. */
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
