// How many nodes recover in a second. Those beyond it get a time of their own to come back, so that a fleet that lost its
// certificates during an outage returns in a line and not as a crowd.

export type Pace = {
  /** Undefined: go on now. Otherwise the seconds to wait. */
  take(): number | undefined;
};

/** Longer ones would keep a node waiting after the line has dissolved. */
const LONGEST_WAIT_SECONDS = 300;

/** `now`: milliseconds, monotonic. */
export function createPace(perSecond: number, now: () => number = () => performance.now()): Pace {
  const turnMs = 1000 / perSecond;
  /** Of this second's allowance. */
  let left = perSecond;
  let refilledAt = now();
  /** When the last one who was sent away is expected. */
  let lineEndsAt = 0;
  return {
    take() {
      const at = now();
      left = Math.min(perSecond, left + (at - refilledAt) / turnMs);
      refilledAt = at;
      if (left >= 1) {
        left -= 1;
        return undefined;
      }
      lineEndsAt = Math.min(Math.max(lineEndsAt, at) + turnMs, at + LONGEST_WAIT_SECONDS * 1000);
      return Math.max(1, Math.ceil((lineEndsAt - at) / 1000));
    },
  };
}
