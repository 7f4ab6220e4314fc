// What request handlers of the api use of allocations: waiting for a change, and starting the reconciler when the task of an
// allocation ends.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import { type Awaiting, createAwaiting } from "../mechanisms/awaiting.ts";
import type { Signals } from "../mechanisms/signals.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import { selectRevisions } from "./queries.ts";

export const RECONCILE_ALLOCATIONS = "reconcile-allocations";

export type Allocations = {
  /** Call after the commit: waiting requests read the allocation again, and the end of the task starts the reconciler. */
  changed(allocationId: string, taskId: string | undefined): void;
  /** Resolves when the revision differs from `revision`, or the time is over. */
  awaiting: Pick<Awaiting, "changed">;
  stop(): Promise<void>;
};

/** Most tasks end within this time; the others are left to the next turn of the job. */
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
