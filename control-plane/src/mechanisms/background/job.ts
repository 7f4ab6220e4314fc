// A background job as data. Its `run` is an idempotent function of what is stored and keeps nothing for its next turn:
// a turn may be skipped, repeated, or begun by another process, and the outcome is the same.

import type { Topic } from "../signals.ts";

/**
 * - `one worker`: one of all workers, whichever takes the turn;
 * - `each worker`, `each api`: every process of that kind, for what it keeps fresh for itself.
 */
export type RunsIn = "one worker" | "each worker" | "each api";

/** How much a turn did, by kind: `{ removed: 3 }`. */
export type JobResult = Readonly<Record<string, number>>;

export type Job<Context> = {
  /** Unique among all modules; a verb and its object: `remove-old-tasks`. */
  name: string;
  /** Seconds between two turns; 0 turns the job off. A function is asked again every second; what was off stays off. */
  every: number | ((context: Context) => number);
  /** The first turn begins with the process, not an interval later. */
  atStart?: true;
  /** Signals that start a turn early. They may be lost, so the job must be right without them. */
  wakeOn?: readonly Topic[];
  runsIn: RunsIn;
  run(context: Context): Promise<JobResult> | Promise<void>;
};
