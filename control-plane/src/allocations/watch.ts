// What the api's requests have of allocations: who waits for one waits here, and the end of a task that an allocation
// waits for starts the job that moves it on.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import { type Awaiting, createAwaiting } from "../mechanisms/awaiting.ts";
import type { Signals } from "../mechanisms/signals.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import { selectRevisions } from "./queries.ts";

export const RECONCILE_ALLOCATIONS = "reconcile-allocations";

export type Allocations = {
  /** After the commit: who waits looks again; the end of the task moves the allocation on at once. */
  changed(allocationId: string, taskId: string | undefined): void;
  /** Resolves when the revision differs from the one given, or the time is over. */
  awaiting: Pick<Awaiting, "changed">;
  stop(): Promise<void>;
};

/** Most tasks end within it; for the others the job's next turn is soon enough. */
const AWAIT_TASK_MS = 60_000;

export function watchAllocations(options: {
  system: Sql;
  engine: Pick<TaskEngine, "changed">;
  signals: Signals;
  wake(job: string): void;
  log: Log;
}): Allocations {
  const { system, engine, signals, wake, log } = options;
  const stopping = new AbortController();

  async function reconcileAtEndOf(taskId: string): Promise<void> {
    const { signal } = stopping;
    await engine.changed({ id: taskId, revision: undefined }, { waitMs: AWAIT_TASK_MS, until: "end", signal });
    if (!signal.aborted) wake(RECONCILE_ALLOCATIONS);
  }

  const awaiting = createAwaiting({ sql: system, signals, log, topic: "allocation", read: selectRevisions });
  return {
    changed(allocationId, taskId) {
      signals.publish("allocation", [allocationId]);
      if (taskId) void reconcileAtEndOf(taskId);
    },
    awaiting,
    async stop() {
      stopping.abort();
      await awaiting.stop();
    },
  };
}
