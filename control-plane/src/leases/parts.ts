// What leases are moved on with.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import type { TaskEngine } from "../tasks/engine.ts";
import type { PlacementPolicy } from "./place.ts";

export type LeaseTasks = Pick<TaskEngine, "enqueue" | "enqueued" | "cancel" | "cancelled">;

export type Advancing = {
  system: Sql;
  tasks: LeaseTasks;
  policy: PlacementPolicy & { staleAfterSeconds: number };
  log: Log;
  /** Called after the commit, with the task that it now waits for. */
  onMoved(leaseId: string, taskId: string | undefined): void;
};
