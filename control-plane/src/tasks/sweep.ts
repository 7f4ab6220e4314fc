// Ends or requeues tasks that nobody works on any more: queued ones that expired, and dispatched ones whose lease ran
// out. tasks/transitions/ decides the outcome; this is the loop over batches, with the notifications.

import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import type { Sql } from "../database/connect.ts";
import type { Signals } from "../mechanisms/signals.ts";
import { type Expired, expireUndelivered, settleLapsedLeases } from "./transitions/expire.ts";

export type Swept = { expired: number; requeued: number; cancelled: number };

const BATCH = 1_000;

/** Learns of every task that is swept: not delivered in time, or without a result when its lease ended. */
export type OnSwept = (what: "not_delivered" | "lease_over", rows: readonly Expired[]) => Promise<void>;

export async function sweepTasks(
  system: Sql,
  signals: Pick<Signals, "publish">,
  onSwept?: OnSwept,
): Promise<Swept> {
  const swept: Swept = { expired: 0, requeued: 0, cancelled: 0 };
  const sweeps = { not_delivered: expireUndelivered, lease_over: settleLapsedLeases };
  for (const what of ["not_delivered", "lease_over"] as const) {
    for (;;) {
      const rows = await sweeps[what](system, BATCH);
      if (rows.length > 0) await onSwept?.(what, rows);
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
