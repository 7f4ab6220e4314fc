// The time of the background driver, so that tests can move it.

export type Clock = {
  /** Milliseconds since 1970. */
  now(): number;
  /** Returns a function that ends the repetition. */
  repeat(everyMs: number, work: () => void): () => void;
};

export const systemClock: Clock = {
  now: () => Date.now(),
  repeat(everyMs, work) {
    const timer = setInterval(work, everyMs);
    return () => clearInterval(timer);
  },
};
