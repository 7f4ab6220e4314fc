// The transition table of leases: every state, every event, and the outcome of each pair. The statements beside this file are
// built from it (sql.ts). They are the only ones that write a lease's status.

import { type LeaseState, leaseStates } from "@holdfast/contracts/endpoints/leases";
import { statesChangedBy as changedBy } from "../../mechanisms/transition-sql.ts";

export const leaseEvents = [
  /** A host with room was chosen, and its launch task is queued. */
  "place",
  /** The host has started the VM. */
  "launch_succeeded",
  /** The host could not, and has removed what it had made. */
  "launch_failed",
  /** The launch task ended before any host was offered it. */
  "launch_unsent",
  /** The launch task ended without a result of the host, which may have started the VM. */
  "launch_lost",
  /** The guest has called back, or is connected again. */
  "guest_connected",
  "guest_disconnected",
  /** Whoever uses the VM reports that its work has started. */
  "work_started",
  /** The host reports that the VM has stopped by itself. */
  "vm_exited",
  /** An inventory that was requested after the launch does not list the VM. */
  "vm_missing",
  "connect_deadline",
  "disconnect_grace",
  /** The hard end of every VM. */
  "ttl",
  /** No host took it in time. */
  "wait_over",
  /** A person ends it. */
  "terminate",
  /** A person ends it, and its host is retired: nothing can be confirmed any more. */
  "abandon",
  /** The host has removed the VM and everything of it. */
  "terminate_succeeded",
  "terminate_failed",
  /** The terminate task ended without a result of the host. */
  "terminate_lost",
  /** Its host was retired, which cannot be undone. */
  "host_retired",
  /** What a host reports of an earlier generation. */
  "stale",
] as const;
export type LeaseEvent = (typeof leaseEvents)[number];

export type Outcome =
  | { to: LeaseState }
  /** The state stays; what was seen is noted in the row: since when the guest is disconnected, or that a task has ended. */
  | "noted"
  /** Kept as evidence in the timeline; the lease does not change. */
  | "late"
  | "unchanged"
  /** The request gets an error. */
  | "refused"
  /** The checks of the table `vm_leases` allow no row for which this could happen. */
  | "impossible";

type Row = Record<LeaseEvent, Outcome>;

/** Without a host, nothing of a host can happen to it. */
const withoutHost = {
  launch_succeeded: "impossible",
  launch_failed: "impossible",
  launch_unsent: "impossible",
  launch_lost: "impossible",
  guest_connected: "impossible",
  guest_disconnected: "impossible",
  vm_exited: "impossible",
  vm_missing: "impossible",
  disconnect_grace: "impossible",
  abandon: "impossible",
  host_retired: "impossible",
  stale: "late",
} as const satisfies Partial<Row>;

/** A terminate task exists only where one is needed. */
const withoutTerminateTask = {
  terminate_succeeded: "impossible",
  terminate_failed: "impossible",
  terminate_lost: "impossible",
} as const satisfies Partial<Row>;

const unchangedByClock = {
  connect_deadline: "unchanged",
  disconnect_grace: "unchanged",
  ttl: "unchanged",
  wait_over: "unchanged",
} as const satisfies Partial<Row>;

/** The launch result is known, or no longer decides anything. */
const lateLaunch = {
  launch_succeeded: "late",
  launch_failed: "late",
  launch_unsent: "late",
  launch_lost: "late",
} as const satisfies Partial<Row>;

/** Its VM is on a host, as far as is known. */
const onHost = {
  ...lateLaunch,
  ...withoutTerminateTask,
  place: "unchanged",
  vm_exited: { to: "terminating" },
  vm_missing: { to: "orphaned" },
  connect_deadline: "unchanged",
  disconnect_grace: "unchanged",
  ttl: { to: "terminating" },
  wait_over: "unchanged",
  terminate: { to: "terminating" },
  abandon: { to: "terminated" },
  host_retired: { to: "orphaned" },
  stale: "late",
} as const satisfies Partial<Row>;

/** The VM is to go: what the guest does no longer matters. */
const leaving = {
  ...lateLaunch,
  ...unchangedByClock,
  place: "unchanged",
  guest_connected: "unchanged",
  guest_disconnected: "unchanged",
  work_started: "refused",
  vm_exited: "unchanged",
  vm_missing: "unchanged",
  stale: "late",
} as const satisfies Partial<Row>;

const ended: Row = {
  ...leaving,
  ...withoutTerminateTask,
  terminate: "unchanged",
  abandon: "unchanged",
  host_retired: "unchanged",
};

export const leaseTable: Record<LeaseState, Row> = {
  requested: {
    ...withoutHost,
    ...withoutTerminateTask,
    place: { to: "provisioning" },
    work_started: "refused",
    connect_deadline: "unchanged",
    ttl: "unchanged",
    wait_over: { to: "failed" },
    terminate: { to: "terminated" },
  },
  provisioning: {
    ...onHost,
    launch_succeeded: { to: "booting" },
    launch_failed: { to: "failed" },
    // No host has begun, so another one may.
    launch_unsent: { to: "requested" },
    launch_lost: { to: "terminating" },
    // A quick guest is reported before the result of its launch is.
    guest_connected: { to: "connected" },
    guest_disconnected: "unchanged",
    work_started: "refused",
    // The result of the launch follows and decides.
    vm_exited: "unchanged",
    vm_missing: "unchanged",
    disconnect_grace: "impossible",
  },
  booting: {
    ...onHost,
    launch_succeeded: "impossible",
    launch_failed: "impossible",
    launch_unsent: "impossible",
    launch_lost: "impossible",
    guest_connected: { to: "connected" },
    guest_disconnected: "unchanged",
    work_started: "refused",
    connect_deadline: { to: "terminating" },
    disconnect_grace: "impossible",
  },
  connected: {
    ...onHost,
    guest_connected: "noted",
    guest_disconnected: "noted",
    work_started: { to: "running" },
    disconnect_grace: { to: "terminating" },
  },
  running: {
    ...onHost,
    guest_connected: "noted",
    guest_disconnected: "noted",
    work_started: "unchanged",
    disconnect_grace: { to: "terminating" },
  },
  terminating: {
    ...leaving,
    terminate: "unchanged",
    abandon: { to: "terminated" },
    terminate_succeeded: { to: "terminated" },
    // Something of it may be left: the safety loop tries again.
    terminate_failed: { to: "orphaned" },
    terminate_lost: "noted",
    host_retired: { to: "orphaned" },
  },
  terminated: ended,
  failed: ended,
  orphaned: {
    ...leaving,
    terminate: "unchanged",
    abandon: { to: "terminated" },
    terminate_succeeded: { to: "terminated" },
    terminate_failed: "noted",
    terminate_lost: "noted",
    host_retired: "unchanged",
  },
};

/** The states that the event changes. */
export const statesChangedBy = (event: LeaseEvent) => changedBy(leaseTable, event);

export const INITIAL_STATE: LeaseState = "requested";

/** A host has it, with its share of the host's capacity. */
export const statesOnHost = statesChangedBy("abandon");
/** The VM is to be removed from its host: a terminate task is needed. */
export const statesLeaving = statesChangedBy("terminate_succeeded");
export const statesEnded = leaseStates.filter((state) => state !== INITIAL_STATE && !statesOnHost.includes(state));
