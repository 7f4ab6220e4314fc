// The life of an allocation: what each event does in each status. Nothing else decides a status, and
// queries.ts writes only what comes out of here. A node that is away never fails an allocation: its
// work is asked for again until the node answers or is retired.

import type { AllocationStatus } from "@holdfast/contracts/endpoints/allocations";

export const allocationEvents = [
  /** The node has made the user. */
  "provisioned",
  /** The node tried to make the user, and could not. */
  "provision_failed",
  /** A person requests that its user is checked and restored. */
  "repair",
  /** A person releases it. */
  "release",
  /** The node has removed the user. */
  "deprovisioned",
  /** The node tried to remove the user, and could not. */
  "deprovision_failed",
  /** The task that worked on it ended without the node's word: expired, cancelled, or no longer kept. */
  "task_lost",
  /** The node was retired, with everything on it. */
  "node_retired",
] as const;
export type AllocationEvent = (typeof allocationEvents)[number];

/** `task`: what the node is to be asked, together with the change. */
export type Move = { to: AllocationStatus; task: "provision" | "repair" | "deprovision" | "none" };
/**
 * `stays`: nothing to do, because it is so already or no longer matters. `refused`: whoever asks for it gets an error.
 */
export type AllocationOutcome = Move | "stays" | "refused";

const outcomes: Record<AllocationStatus, Record<AllocationEvent, AllocationOutcome>> = {
  requested: {
    provisioned: { to: "active", task: "none" },
    provision_failed: { to: "failed", task: "none" },
    repair: "refused",
    // The tasks of one user run in order: what was begun is undone behind it.
    release: { to: "releasing", task: "deprovision" },
    deprovisioned: "stays",
    deprovision_failed: "stays",
    task_lost: { to: "requested", task: "provision" },
    node_retired: { to: "failed", task: "none" },
  },
  active: {
    provisioned: "stays",
    provision_failed: "stays",
    // It stays active: its terminals stay open, and the task alone says what was found.
    repair: { to: "active", task: "repair" },
    release: { to: "releasing", task: "deprovision" },
    deprovisioned: "stays",
    deprovision_failed: "stays",
    task_lost: "stays",
    // Its owner releases it, and learns then that the node was retired.
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
    // It may have left something on the node.
    release: { to: "releasing", task: "deprovision" },
    deprovisioned: "stays",
    deprovision_failed: "stays",
    task_lost: "stays",
    node_retired: "stays",
  },
};

export function allocationOutcome(status: AllocationStatus, event: AllocationEvent): AllocationOutcome {
  return outcomes[status][event];
}
