// The agent's counters since its start, for its heartbeats and its metrics.

import type { Heartbeat } from "@holdfast/contracts/node/protocol";
import type { TaskEvent } from "../executor/executor.ts";

export type Counters = Heartbeat["counters"];

export const noCounters: Readonly<Counters> = {
  identity_rejections: 0,
  tasks_started: 0,
  tasks_succeeded: 0,
  tasks_failed: 0,
  tasks_refused: 0,
  polls_failed: 0,
  results_failed: 0,
  renewals_failed: 0,
};

export const counterOf: Record<TaskEvent, keyof Counters> = {
  started: "tasks_started",
  succeeded: "tasks_succeeded",
  failed: "tasks_failed",
  refused: "tasks_refused",
};
