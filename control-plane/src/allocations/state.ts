// The transition table of allocations: what each event does in each status. Nothing else decides a status, the task
// that the node gets, or which rows the reconciler reads; queries.ts writes only results of this table. An offline node
// never fails an allocation: its task is enqueued again until the node reports a result or is retired.

import type { AllocationStatus } from "@holdfast/contracts/endpoints/allocations";
import { isOneOf, statesWhere } from "../mechanisms/transition-sql.ts";

export const allocationEvents = [
  /** The node has created the user. */
  "provisioned",
  /** The node could not create the user. */
  "provision_failed",
  /** A person requests that its user is checked and restored. */
  "repair",
  /** A person releases it. */
  "release",
  /** The node has removed the user. */
  "deprovisioned",
  /** The node could not remove the user. */
  "deprovision_failed",
  /** Its task ended without a result of the node: expired, cancelled, or no longer stored. */
  "task_lost",
  /** The node was retired, which cannot be undone, with whatever is on it. */
  "node_retired",
] as const;
export type AllocationEvent = (typeof allocationEvents)[number];

/** `task`: what is enqueued for the node, in the transaction of the change. */
export type Move = { to: AllocationStatus; task: "provision" | "repair" | "deprovision" | "none" };
/** `stays`: nothing to do, because it is done already or no longer relevant. `refused`: the request gets an error. */
export type AllocationOutcome = Move | "stays" | "refused";

const table = {
  requested: {
    provisioned: { to: "active", task: "none" },
    provision_failed: { to: "failed", task: "none" },
    repair: "refused",
    // The tasks of one user run in order: a started one is undone by the next one.
    release: { to: "releasing", task: "deprovision" },
    deprovisioned: "stays",
    deprovision_failed: "stays",
    task_lost: { to: "requested", task: "provision" },
    node_retired: { to: "failed", task: "none" },
  },
  active: {
    provisioned: "stays",
    provision_failed: "stays",
    // It stays active and its terminals stay open; the task reports what was found.
    repair: { to: "active", task: "repair" },
    release: { to: "releasing", task: "deprovision" },
    deprovisioned: "stays",
    deprovision_failed: "stays",
    task_lost: "stays",
    // When its owner releases it, the response says that the node was retired.
    node_retired: "stays",
  },
  releasing: {
    provisioned: "stays",
    provision_failed: "stays",
    repair: "refused",
    release: "stays",
    deprovisioned: { to: "released", task: "none" },
    deprovision_failed: { to: "failed", task: "none" },
    task_lost: { to: "releasing", task: "deprovision" },
    node_retired: { to: "released", task: "none" },
  },
  released: {
    provisioned: "stays",
    provision_failed: "stays",
    repair: "refused",
    release: "stays",
    deprovisioned: "stays",
    deprovision_failed: "stays",
    task_lost: "stays",
    node_retired: "stays",
  },
  failed: {
    provisioned: "stays",
    provision_failed: "stays",
    repair: "refused",
    // Parts of the user may be left on the node.
    release: { to: "releasing", task: "deprovision" },
    deprovisioned: "stays",
    deprovision_failed: "stays",
    task_lost: "stays",
    node_retired: "stays",
  },
} as const satisfies Record<AllocationStatus, Record<AllocationEvent, AllocationOutcome>>;

/** The type of the outcome is that of the event's cells: a release, for example, never enqueues a repair. */
export function allocationOutcome<E extends AllocationEvent>(
  status: AllocationStatus,
  event: E,
): (typeof table)[AllocationStatus][E] {
  return table[status][event];
}

/** For an allocation `a`: whether a task of its node is outstanding, so that its end changes the allocation. */
export const isInProgress = isOneOf(
  "a.status",
  statesWhere<AllocationStatus, AllocationEvent, AllocationOutcome>(
    table,
    "task_lost",
    (outcome) => typeof outcome === "object",
  ),
);
