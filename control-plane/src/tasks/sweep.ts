// Ends or requeues tasks that nobody works on any more: queued ones that expired, and dispatched ones whose lease ran
// out. tasks/transitions/ decides the outcome; this is the loop over batches, with the notifications.

import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import type { Sql } from "../database/connect.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { expireUndelivered, settleLapsedLeases } from "./transitions/expire.ts";

export type Swept = { expired: number; requeued: number; cancelled: number };

const BATCH = 1_000;

export async function sweepTasks(system: Sql, signals: Pick<Signals, "publish">): Promise<Swept> {
  const swept: Swept = { expired: 0, requeued: 0, cancelled: 0 };
  for (const sweep of [expireUndelivered, settleLapsedLeases]) {
    for (;;) {
      const rows = await sweep(system, BATCH);
      for (const row of rows) swept[counterOf(row.status)] += 1;
      signals.publish(
        "task",
        rows.map((row) => row.id),
      );
      // A task is queued again, or the next of its order can be claimed.
      signals.publish("node_work", [...new Set(rows.map((row) => row.node_id))]);
      if (rows.length < BATCH) break;
    }
  }
  return swept;
}

function counterOf(status: TaskStatus): keyof Swept {
  if (status === "queued") return "requeued";
  return status === "cancelled" ? "cancelled" : "expired";
}
