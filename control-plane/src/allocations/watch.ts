// Runs the reconciler of allocations in this process: at once when a task has ended that this process
// gave out for one, and every few seconds for everything else: tasks of another replica, slow ones,
// nodes that take work again. Here waits who waits for an allocation, too.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import type { Signals } from "../signals/signals.ts";
import { type Awaiting, createAwaiting } from "../tasks/awaiting.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import { runPeriodically } from "../worker/periodic.ts";
import { selectRevisions } from "./queries.ts";
import { reconcileAllocations } from "./reconcile.ts";

export type Allocations = {
  /** After the commit: who waits looks again; the end of the task moves the allocation on at once. */
  changed(allocationId: string, taskId: string | undefined): void;
  /** Resolves when the revision differs from the one given, or the time is over. */
  awaiting: Pick<Awaiting, "changed">;
  stop(): Promise<void>;
};

const EVERY_SECONDS = 5;
/** Most tasks end within it; for the others the periodic turn is soon enough. */
const AWAIT_TASK_MS = 60_000;

export function watchAllocations(options: {
  system: Sql;
  engine: TaskEngine;
  signals: Signals;
  log: Log;
}): Allocations {
  const { system, engine, signals, log } = options;
  const stopping = new AbortController();
  const reconcile = oneAtATime(() => reconcileAllocations(system, engine, { log, onMoved: changed }));

  const reconcileSoon = () =>
    reconcile().catch((error: Error) => log.debug({ err: error }, "allocations wait for their next turn"));
  // A node may take work again, or was retired.
  const unsubscribe = signals.subscribe("node_standing", () => void reconcileSoon());

  async function reconcileAtEndOf(taskId: string): Promise<void> {
    await engine.changed(
      { id: taskId, revision: undefined },
      {
        waitMs: AWAIT_TASK_MS,
        until: "end",
        signal: stopping.signal,
      },
    );
    if (!stopping.signal.aborted) await reconcileSoon();
  }

  function changed(allocationId: string, taskId: string | undefined): void {
    signals.publish("allocation", [allocationId]);
    if (taskId) void reconcileAtEndOf(taskId);
  }

  const periodic = runPeriodically({ name: "allocations", seconds: EVERY_SECONDS, log, work: reconcile });
  const awaiting = createAwaiting({ sql: system, signals, log, topic: "allocation", read: selectRevisions });
  return {
    changed,
    awaiting,
    async stop() {
      unsubscribe();
      stopping.abort();
      await Promise.all([periodic.stop(), awaiting.stop()]);
      await reconcile.idle();
    },
  };
}

/** Asked for while it runs, it runs once more after that: what it looked at may have changed. */
function oneAtATime(work: () => Promise<void>): (() => Promise<void>) & { idle(): Promise<void> } {
  let running: Promise<void> | undefined;
  let wanted = false;
  const run = async () => {
    try {
      while (wanted) {
        wanted = false;
        await work();
      }
    } finally {
      running = undefined;
    }
  };
  const ask = () => {
    wanted = true;
    running ??= run();
    return running;
  };
  return Object.assign(ask, { idle: async () => void (await running?.catch(() => undefined)) });
}
