// Measures what a task spends its time on. Entering a phase ends the one before; entering one again
// adds to it. What runs before the first phase, or without any, is called `run`.

import type { PhaseTimings } from "@holdfast/contracts/node-protocol";
import { redact } from "@holdfast/kit/redact";

export type Phases = {
  readonly current: string;
  enter(phase: string): void;
  /** Milliseconds so far, the present phase included. */
  timings(): PhaseTimings;
};

const FIRST = "run";
const LONGEST_NAME = 64;

export function measurePhases(now: () => number = () => performance.now()): Phases {
  const spent = new Map<string, number>();
  let current = FIRST;
  let since = now();
  const close = (at: number) => {
    const before = spent.get(current);
    // Nothing happened before the first phase: its time is not worth a line.
    if (current !== FIRST || at - since >= 1 || before !== undefined)
      spent.set(current, (before ?? 0) + (at - since));
    since = at;
  };
  return {
    get current() {
      return current;
    },
    enter(phase) {
      close(now());
      current = redact(phase).slice(0, LONGEST_NAME);
    },
    timings() {
      const running = new Map(spent);
      running.set(current, (running.get(current) ?? 0) + (now() - since));
      return Object.fromEntries([...running].map(([phase, ms]) => [phase, Math.round(ms * 100) / 100]));
    },
  };
}
