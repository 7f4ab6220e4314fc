// Task truth: tasks of a node that expired before it took them, and those it took and whose result did not arrive. What the
// system requests again and again says nothing: the next one is on its way.

import type { Sql } from "../../database/connect.ts";
import type { Signals } from "../../mechanisms/signals.ts";
import type { OnSwept } from "../../tasks/sweep.ts";
import { type NewObservation, recordObservations } from "../evidence/write.ts";

export function observeSwept(options: { system: Sql; signals: Pick<Signals, "publish"> }): OnSwept {
  return async (what, rows) => {
    // A task that is not idempotent may still be running without a lease.
    const counted = rows.filter(
      ({ routine, status }) => !routine && (what === "not_delivered" || status === "queued"),
    );
    const byNode = Map.groupBy(counted, ({ node_id }) => node_id);
    const observedAt = new Date();
    const observations = [...byNode].map(([nodeId, tasks]): NewObservation => {
      const detail = { count: tasks.length, task_id: tasks[0]?.id ?? null };
      const common = { nodeId, observer: "control_plane", observedAt, detail } as const;
      return what === "not_delivered"
        ? { ...common, kind: "queued_tasks", value: "past_expiry" }
        : { ...common, kind: "dispatched_tasks", value: "past_lease" };
    });
    const changed = await recordObservations(options.system, observations);
    if (changed.length > 0) options.signals.publish("evidence", changed);
  };
}
