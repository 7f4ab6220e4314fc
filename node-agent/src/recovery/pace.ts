// When the next attempt to recover may begin, by the monotonic clock.

import { type Ending, FIRST_DELAY_MS, pauseAfter } from "./decide.ts";

export type Pace = {
  /** Until the next attempt may begin. The first one does not begin at once. */
  remainingMs(): number;
  ended(attempt: { kind: Ending; retryAfterMs: number | undefined }): void;
  wakeIn(ms: number): void;
  /** All is well: the next attempt is a first one again. */
  reset(): void;
};

export function createPace(options: { now: () => number; random: () => number; wake: () => void }): Pace {
  const { now, random } = options;
  let failures = 0;
  let notBefore: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  return {
    remainingMs() {
      notBefore ??= now() + FIRST_DELAY_MS * random();
      return notBefore - now();
    },
    ended({ kind, retryAfterMs }) {
      notBefore = now() + pauseAfter({ kind, retryAfterMs, failures }, random());
      failures += 1;
    },
    wakeIn(ms) {
      timer ??= setTimeout(() => {
        timer = undefined;
        options.wake();
      }, ms).unref();
    },
    reset() {
      failures = 0;
      notBefore = undefined;
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
