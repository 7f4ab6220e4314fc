// How many nodes recover in a second, and how many at once. Those beyond it get a time of their own to come back, so that a
// fleet that lost its certificates during an outage returns in a line and not as a crowd, and nodes that lost nothing hardly
// notice it.

export type Pace = {
  /** Undefined: go on now. Otherwise the seconds to wait. */
  take(): number | undefined;
  /** Exchanges a token when it is its turn, in the order of the calls. */
  run<T>(exchange: () => Promise<T>): Promise<T>;
};

/** Longer ones would keep a node waiting after the line has dissolved. */
const LONGEST_WAIT_SECONDS = 300;
/** One transaction each: with all that may recover in a second at once, a task of another node took twice as long. */
const AT_ONCE = 2;

/** `now`: milliseconds, monotonic. */
export function createPace(perSecond: number, now: () => number = () => performance.now()): Pace {
  const turnMs = 1000 / perSecond;
  /** Of this second's allowance. */
  let left = perSecond;
  let refilledAt = now();
  /** When the last one who was sent away is expected. */
  let lineEndsAt = 0;
  let underWay = 0;
  const waiting: (() => void)[] = [];
  return {
    take() {
      const at = now();
      left = Math.min(perSecond, left + (at - refilledAt) / turnMs);
      refilledAt = at;
      // A slow database serves fewer than the setting allows: who would wait here for a second waits at home instead.
      if (left >= 1 && waiting.length < perSecond) {
        left -= 1;
        return undefined;
      }
      lineEndsAt = Math.min(Math.max(lineEndsAt, at) + turnMs, at + LONGEST_WAIT_SECONDS * 1000);
      return Math.max(1, Math.ceil((lineEndsAt - at) / 1000));
    },
    async run(exchange) {
      if (underWay >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
      else underWay += 1;
      try {
        return await exchange();
      } finally {
        const next = waiting.shift();
        if (next) next();
        else underWay -= 1;
      }
    },
  };
}
