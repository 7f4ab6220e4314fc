// Finds events of leases in what is stored: ended tasks, passed deadlines, retired hosts. Nothing is changed here; what comes
// of an event is decided under the lock (transitions/apply.ts).

import type { TaskStatus } from "@holdfast/contracts/endpoints/tasks";
import type { TaskFailure } from "@holdfast/contracts/node/protocol";
import type { TerminatedVm } from "@holdfast/contracts/node/vm-host";
import type { Queryable } from "../database/connect.ts";
import { type AboutLease, type LeaseReasonCode, leaseReason } from "./reasons.ts";
import type { Happened } from "./transitions/apply.ts";
import { isChangedBy, isOnHost, isWaiting } from "./transitions/sql.ts";

const MOST = 500;

type EndedTask = AboutLease & {
  vm_id: string;
  task_id: string;
  /** Null: the task is no longer kept. */
  task_status: TaskStatus | null;
  task_generation: number | null;
  task_failure: TaskFailure | null;
  task_result: unknown;
};

const about = (db: Queryable) => db`
  l.id, l.vm_id, l.image_id, l.connect_seconds, l.grace_seconds, l.ttl_seconds,
  (SELECT n.name FROM nodes n WHERE n.id = l.host_id) AS host_name`;

export async function findEndedLaunches(db: Queryable): Promise<Happened[]> {
  const rows = await db<EndedTask[]>`
    SELECT ${about(db)}, l.launch_task_id AS task_id, t.status AS task_status, t.generation AS task_generation,
      t.failure AS task_failure, NULL AS task_result
    FROM vm_leases l LEFT JOIN tasks t ON t.id = l.launch_task_id
    WHERE l.launch_task_id IS NOT NULL AND NOT l.launch_settled AND (t.id IS NULL OR t.finished_at IS NOT NULL)
    ORDER BY l.id LIMIT ${MOST}`;
  return rows.map((row) => ({ leaseId: row.id, vmId: row.vm_id, taskId: row.task_id, ...launchEnding(row) }));
}

/** A task with generation 0 was never offered to its node. */
function launchEnding(row: EndedTask): Pick<Happened, "event" | "reason"> {
  switch (row.task_status) {
    case "completed":
      return { event: "launch_succeeded" };
    case "failed":
      return { event: "launch_failed", reason: row.task_failure ?? leaseReason("launch_lost", row) };
    default:
      return row.task_generation === 0
        ? { event: "launch_unsent", reason: leaseReason("launch_unsent", row) }
        : { event: "launch_lost", reason: leaseReason("launch_lost", row) };
  }
}

const leavesByResult = isChangedBy("terminate_succeeded");

export async function findEndedTerminations(db: Queryable): Promise<Happened[]> {
  const rows = await db<EndedTask[]>`
    SELECT ${about(db)}, l.terminate_task_id AS task_id, t.status AS task_status, t.generation AS task_generation,
      t.failure AS task_failure, t.result AS task_result
    FROM vm_leases l LEFT JOIN tasks t ON t.id = l.terminate_task_id
    WHERE l.finished_at IS NULL AND ${leavesByResult} AND l.terminate_task_id IS NOT NULL
      AND (t.id IS NULL OR t.finished_at IS NOT NULL)
    ORDER BY l.id LIMIT ${MOST}`;
  return rows.map((row) => ({ leaseId: row.id, vmId: row.vm_id, taskId: row.task_id, ...terminationEnding(row) }));
}

function terminationEnding(row: EndedTask): Pick<Happened, "event" | "reason" | "message"> {
  switch (row.task_status) {
    case "completed": {
      const { existed } = row.task_result as TerminatedVm;
      const message = existed
        ? `${row.host_name} has removed the VM and everything of it.`
        : `${row.host_name} confirms that nothing of the VM is there.`;
      return { event: "terminate_succeeded", message };
    }
    case "failed":
      return { event: "terminate_failed", reason: row.task_failure ?? leaseReason("terminate_lost", row) };
    default:
      return { event: "terminate_lost", message: leaseReason("terminate_lost", row).message };
  }
}

type Due = AboutLease & { event: "wait_over" | "connect_deadline" | "disconnect_grace" | "ttl" | "host_retired" };

const reasonOf: Record<Due["event"], LeaseReasonCode> = {
  wait_over: "no_host_in_time",
  connect_deadline: "connect_deadline",
  disconnect_grace: "disconnected",
  ttl: "ttl",
  host_retired: "host_retired",
};

const waits = isWaiting();
const onHost = isOnHost();
const hasConnectDeadline = isChangedBy("connect_deadline");
const hasGrace = isChangedBy("disconnect_grace");
const hasTtl = isChangedBy("ttl");
const endsWithHost = isChangedBy("host_retired");

/** Of a lease with several, the one that concerns everything on the host first. */
export async function findDue(db: Queryable): Promise<Happened[]> {
  const rows = await db<Due[]>`
    SELECT ${about(db)}, d.event FROM vm_leases l LEFT JOIN nodes h ON h.id = l.host_id CROSS JOIN LATERAL (SELECT CASE
      WHEN ${endsWithHost} AND h.status = 'retired' THEN 'host_retired'
      WHEN ${hasTtl} AND l.expires_at <= now() THEN 'ttl'
      WHEN ${hasConnectDeadline} AND l.connect_deadline_at <= now() THEN 'connect_deadline'
      WHEN ${hasGrace} AND l.disconnected_at + l.grace_seconds * interval '1 second' <= now() THEN 'disconnect_grace'
      END AS event) AS d
    WHERE ${onHost} AND d.event IS NOT NULL
    UNION ALL
    SELECT ${about(db)}, 'wait_over' FROM vm_leases l WHERE ${waits} AND l.wait_until <= now()
    LIMIT ${MOST}`;
  return rows.map((row) => ({
    leaseId: row.id,
    vmId: row.vm_id,
    event: row.event,
    reason: leaseReason(reasonOf[row.event], row),
  }));
}
