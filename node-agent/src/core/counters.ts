// The agent's counters since its start, for its heartbeats and its metrics.

import type { Heartbeat } from "@holdfast/contracts/node/protocol";
import type { TaskEvent } from "../executor/executor.ts";

/** All of them: those of newer agents are optional for the server. */
export type Counters = Required<Heartbeat["counters"]>;

export const noCounters: Readonly<Counters> = {
  identity_rejections: 0,
  tasks_started: 0,
  tasks_succeeded: 0,
  tasks_failed: 0,
  tasks_refused: 0,
  polls_failed: 0,
  results_failed: 0,
  renewals_failed: 0,
  recovery_attempts: 0,
  recovery_successes: 0,
  recovery_failures: 0,
  recovery_suppressed: 0,
};

export const counterOf: Record<TaskEvent, keyof Counters> = {
  started: "tasks_started",
  succeeded: "tasks_succeeded",
  failed: "tasks_failed",
  refused: "tasks_refused",
};
