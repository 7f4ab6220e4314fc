// Measures what a task spends its time on. Entering a phase ends the one before; entering one again
// adds to it. A task that reports no phase has one, `run`. The time before the first reported phase counts
// towards that phase: which phases exist follows from what the task reported, never from how long it took.

import type { PhaseTimings } from "@holdfast/contracts/node/protocol";
import { redact } from "@holdfast/kit/redact";

export type Phases = {
  readonly current: string;
  enter(phase: string): void;
  /** Milliseconds so far, the present phase included. */
  timings(): PhaseTimings;
};

const UNNAMED = "run";
const LONGEST_NAME = 64;

export function measurePhases(now: () => number = () => performance.now()): Phases {
  const spent = new Map<string, number>();
  let current: string | undefined;
  let since = now();
  return {
    get current() {
      return current ?? UNNAMED;
    },
    enter(phase) {
      if (current !== undefined) {
        const at = now();
        spent.set(current, (spent.get(current) ?? 0) + (at - since));
        since = at;
      }
      current = redact(phase).slice(0, LONGEST_NAME);
    },
    timings() {
      const running = new Map(spent);
      const present = current ?? UNNAMED;
      running.set(present, (running.get(present) ?? 0) + (now() - since));
      return Object.fromEntries([...running].map(([phase, ms]) => [phase, Math.round(ms * 100) / 100]));
    },
  };
}
