// Limits how many agents of a process connect at a time. Unlike real agents they share a processor: one that is already
// connected must not wait until thousands of others have created their keys, and none may begin long before it is served, or all
// of them give up shortly before they would have been connected.

/** In one turn of the event loop. */
const PER_TURN = 4;
const MOST_UNDER_WAY = 512;

/** Connects when it is the caller's turn. */
export type Dialling = <T>(connect: () => Promise<T>) => Promise<T>;

export function createDialling(mostUnderWay = MOST_UNDER_WAY): Dialling {
  let waiting: (() => void)[] = [];
  let underWay = 0;
  let scheduled = false;
  const turn = () => {
    scheduled = false;
    const next = waiting.slice(0, Math.min(PER_TURN, mostUnderWay - underWay));
    waiting = waiting.slice(next.length);
    underWay += next.length;
    for (const go of next) go();
    schedule();
  };
  const schedule = () => {
    if (scheduled || waiting.length === 0 || underWay >= mostUnderWay) return;
    scheduled = true;
    setImmediate(turn);
  };
  return async (connect) => {
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      schedule();
    });
    try {
      return await connect();
    } finally {
      underWay -= 1;
      schedule();
    }
  };
}
