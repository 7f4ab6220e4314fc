// What request handlers of the api use of leases: waiting for a change, and moving leases on when a task of one ends.

import type { Values } from "@holdfast/kit/settings";
import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import { type Awaiting, createAwaiting } from "../mechanisms/awaiting.ts";
import type { Signals } from "../mechanisms/signals.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import type { PlacementPolicy } from "./place.ts";
import { selectRevisions } from "./queries.ts";
import type { leaseSettings } from "./settings.ts";
import type { UserDataVault } from "./user-data.ts";

export const ADVANCE_LEASES = "advance-leases";

type Limits = Pick<
  Values<typeof leaseSettings>,
  "vmLeaseTtlSeconds" | "vmConnectDeadlineSeconds" | "vmDisconnectGraceSeconds" | "vmMostPerHost" | "vmMostInTotal"
>;

export type Leases = {
  limits: Limits;
  /** For user data with secrets. */
  vault: UserDataVault;
  policy(): PlacementPolicy;
  /** Starts a turn of the job that places leases. */
  advance(): void;
  /** Call after the commit: waiting requests read the lease again, and it moves on, also when the task ends. */
  changed(leaseId: string, taskId: string | undefined): void;
  /** Resolves when the revision differs from `revision`, or the time is over. */
  awaiting: Pick<Awaiting, "changed">;
  stop(): Promise<void>;
};

/** Longer than a launch may take; the others are left to the next turn of the job. */
const AWAIT_TASK_MS = 300_000;

export function watchLeases(options: {
  system: Sql;
  engine: Pick<TaskEngine, "changed">;
  signals: Signals;
  limits: Limits;
  vault: UserDataVault;
  wake(job: string): void;
  log: Log;
}): Leases {
  const { system, engine, signals, limits, vault, wake, log } = options;
  const stopping = new AbortController();

  async function advanceAtEndOf(taskId: string): Promise<void> {
    const { signal } = stopping;
    await engine.changed({ id: taskId, revision: undefined }, { waitMs: AWAIT_TASK_MS, until: "end", signal });
    if (!signal.aborted) wake(ADVANCE_LEASES);
  }

  const awaiting = createAwaiting({ sql: system, signals, log, topic: "lease", read: selectRevisions });
  return {
    limits,
    vault,
    policy: () => ({ mostPerHost: limits.vmMostPerHost, mostInTotal: limits.vmMostInTotal }),
    advance: () => wake(ADVANCE_LEASES),
    changed(leaseId, taskId) {
      signals.publish("lease", [leaseId]);
      if (taskId) void advanceAtEndOf(taskId);
      else wake(ADVANCE_LEASES);
    },
    awaiting,
    async stop() {
      stopping.abort();
      await awaiting.stop();
    },
  };
}
