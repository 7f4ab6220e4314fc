// Applies events to leases: the one statement by which a lease changes after it was placed. The state under the lock and the
// table decide what comes of each event, so that an event which was found before another one happened does no harm. What is
// reserved on hosts, the timeline and the audit are written by the same statement.
//
// Locks: the hosts, in the order of their ids; then the leases, in the order of theirs.

import type { LeaseState } from "@holdfast/contracts/endpoints/leases";
import type { TaskFailure } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { AuditActor } from "../../audit/record.ts";
import { ConstantSql, type Queryable, rowsOf } from "../../database/connect.ts";
import { targetOf } from "../../mechanisms/transition-sql.ts";
import { byEvent, isEnded, isIn, isInitial } from "./sql.ts";
import type { LeaseEvent } from "./table.ts";

/** An event that was found, or requested by a person. */
export type Happened = {
  leaseId: string;
  event: Exclude<LeaseEvent, "place">;
  /** The VM that it is about; null: the lease as it is. Of another VM than the lease's own it is `stale`. */
  vmId: string | null;
  /** The ended task that it is about: applied while it is the lease's own, once. */
  taskId?: string | null;
  reason?: TaskFailure | null;
  /** What runs in the VM, of `work_started`. */
  work?: string | null;
  /** For the timeline. */
  message?: string | null;
};

export type Applied = {
  id: string;
  org_id: string;
  event: LeaseEvent;
  /** Null: the row is as it was. */
  outcome: "moved" | "noted" | "late" | "unchanged" | "refused";
  from_status: LeaseState;
  status: LeaseState;
  host_id: string | null;
};

type Numbered = Happened & { id: string; auditId: string };

const happened = rowsOf<Numbered>({
  event_id: ["uuid", (one) => one.id],
  audit_id: ["uuid", (one) => one.auditId],
  lease_id: ["uuid", (one) => one.leaseId],
  event: ["text", (one) => one.event],
  vm_id: ["uuid", (one) => one.vmId],
  task_id: ["uuid", (one) => one.taskId ?? null],
  reason: ["text", (one) => (one.reason ? JSON.stringify(one.reason) : null)],
  work: ["text", (one) => one.work ?? null],
  message: ["text", (one) => one.message ?? one.reason?.message ?? null],
});

const columns = { event: "v.event", status: "l.from_status" };
const newStatus = byEvent(columns, targetOf);
const outcome = byEvent(columns, (one) => (typeof one === "object" ? "moved" : one));

/**
 * Whether it still is so under the lock: the task is the lease's own and was not applied before, the guest is still away, what
 * is reported is news. A deadline that has passed stays so.
 */
const stillHolds = new ConstantSql(`CASE
  WHEN h.event LIKE 'launch\\_%' THEN l.launch_task_id = h.task_id AND NOT l.launch_settled
  WHEN h.event IN ('terminate_succeeded', 'terminate_failed', 'terminate_lost') THEN l.terminate_task_id = h.task_id
  WHEN h.event = 'guest_connected' THEN l.connected_at IS NULL OR l.disconnected_at IS NOT NULL
  WHEN h.event = 'guest_disconnected' THEN l.disconnected_at IS NULL
  WHEN h.event = 'disconnect_grace' THEN l.disconnected_at + l.grace_seconds * interval '1 second' <= now()
  ELSE true END`);

const isNow = (...states: LeaseState[]) => isIn("j.new_status", ...states);
const becomesRequested = isInitial("j.new_status");
const ends = isEnded("j.new_status");
const leavesHost = new ConstantSql(`j.outcome = 'moved' AND (${ends.text} OR ${becomesRequested.text})`);
const becomesBooting = isNow("booting");
const becomesConnected = isNow("connected");
const becomesRunning = isNow("running");
const isOrphanedNow = isNow("orphaned");
const isOver = new ConstantSql(`(${ends.text} OR ${isOrphanedNow.text})`);

/**
 * A lease may occur once. Those that are not among the rows are unknown, or the event no longer holds. `by`: who requested it; by
 * default the system, which then writes the audit of ends.
 */
export async function applyEvents(
  sql: Queryable,
  events: readonly Happened[],
  by?: AuditActor,
): Promise<Applied[]> {
  if (events.length === 0) return [];
  const numbered = events.map((one) => ({ ...one, id: uuidv7(), auditId: uuidv7() }));
  const ids = events.map(({ leaseId }) => leaseId);
  return sql<Applied[]>`
    WITH happened AS MATERIALIZED (${happened(numbered)}), hosts AS MATERIALIZED (
      SELECT h.node_id FROM vm_hosts h
      WHERE h.node_id IN (SELECT x.host_id FROM vm_leases x WHERE x.id = ANY (${ids}::uuid[]) AND x.finished_at IS NULL)
      ORDER BY h.node_id FOR NO KEY UPDATE
    ), locked AS MATERIALIZED (
      SELECT h.*, l.id, l.org_id, l.status AS from_status, l.host_id, l.vm_id AS own_vm_id, l.generation,
        l.vcpus, l.memory_mib, l.disk_gib, l.correlation_id, ${stillHolds} AS holds
      FROM happened h JOIN vm_leases l ON l.id = h.lease_id
      WHERE (SELECT count(*) FROM hosts) >= 0 ORDER BY l.id FOR NO KEY UPDATE OF l
    ), judged AS MATERIALIZED (
      SELECT l.*, v.event AS judged_event, ${newStatus} AS new_status, ${outcome} AS outcome
      FROM locked l CROSS JOIN LATERAL (SELECT CASE
        WHEN l.vm_id IS NOT NULL AND l.vm_id IS DISTINCT FROM l.own_vm_id THEN 'stale' ELSE l.event END AS event) AS v
      WHERE l.holds OR l.vm_id IS DISTINCT FROM l.own_vm_id AND l.vm_id IS NOT NULL
    ), changed AS (
      UPDATE vm_leases l SET status = coalesce(j.new_status, l.status), revision = l.revision + 1,
        launch_settled = CASE WHEN ${becomesRequested} THEN false
          ELSE l.launch_settled OR j.judged_event LIKE 'launch\\_%' END,
        host_id = CASE WHEN ${becomesRequested} THEN NULL ELSE l.host_id END,
        vm_id = CASE WHEN ${becomesRequested} THEN NULL ELSE l.vm_id END,
        launch_task_id = CASE WHEN ${becomesRequested} THEN NULL ELSE l.launch_task_id END,
        placed_at = CASE WHEN ${becomesRequested} THEN NULL ELSE l.placed_at END,
        expires_at = CASE WHEN ${becomesRequested} THEN NULL ELSE l.expires_at END,
        terminate_task_id = CASE WHEN ${isOver} OR j.judged_event LIKE 'terminate\\_%' THEN NULL ELSE l.terminate_task_id END,
        terminate_after = CASE WHEN j.judged_event = 'terminate_failed'
          THEN now() + interval '1 minute' ELSE l.terminate_after END,
        booted_at = CASE WHEN ${becomesBooting} THEN now() ELSE l.booted_at END,
        connect_deadline_at = CASE WHEN ${becomesBooting}
          THEN now() + l.connect_seconds * interval '1 second' ELSE l.connect_deadline_at END,
        connected_at = CASE WHEN ${becomesConnected} THEN now() ELSE l.connected_at END,
        disconnected_at = CASE WHEN j.judged_event = 'guest_disconnected' THEN coalesce(l.disconnected_at, now())
          WHEN j.judged_event = 'guest_connected' THEN NULL ELSE l.disconnected_at END,
        running_at = CASE WHEN ${becomesRunning} THEN now() ELSE l.running_at END,
        work = coalesce(j.work, l.work),
        finished_at = CASE WHEN ${ends} THEN now() ELSE l.finished_at END,
        reason = CASE WHEN ${becomesRequested} THEN j.reason::json ELSE coalesce(j.reason::json, l.reason) END
      FROM judged j WHERE l.id = j.id AND (j.outcome IN ('moved', 'noted') OR j.outcome = 'late' AND j.judged_event LIKE 'launch\\_%')
    ), freed AS (
      UPDATE vm_hosts h SET leases = h.leases - f.leases, reserved_vcpus = h.reserved_vcpus - f.vcpus,
        reserved_memory_mib = h.reserved_memory_mib - f.memory_mib, reserved_disk_gib = h.reserved_disk_gib - f.disk_gib
      FROM (
        SELECT j.host_id, count(*) AS leases, sum(j.vcpus) AS vcpus, sum(j.memory_mib) AS memory_mib, sum(j.disk_gib) AS disk_gib
        FROM judged j WHERE ${leavesHost} AND j.host_id IS NOT NULL GROUP BY j.host_id
      ) AS f WHERE h.node_id = f.host_id
    ), noted AS (
      INSERT INTO vm_lease_events (id, lease_id, org_id, event, from_status, to_status, generation, message)
      SELECT j.event_id, j.id, j.org_id, j.judged_event, j.from_status, j.new_status, j.generation, j.message
      FROM judged j WHERE j.outcome IN ('moved', 'noted', 'late')
    ), audited AS (
      INSERT INTO audit_events (id, org_id, actor_type, actor_id, actor_name, role, action, target_type, target_id,
        target_name, result, correlation_id, details)
      SELECT j.audit_id, j.org_id, 'system', NULL, 'leases', 'system',
        CASE WHEN ${isOrphanedNow} THEN 'lease.orphan' ELSE 'lease.end' END, 'lease', j.id::text, NULL, 'allowed',
        j.correlation_id, jsonb_build_object('event', j.judged_event, 'from', j.from_status, 'to', j.new_status,
          'host_id', j.host_id, 'reason', j.reason::json->>'code')
      FROM judged j WHERE ${by === undefined} AND j.outcome = 'moved' AND ${isOver}
    )
    SELECT j.id, j.org_id, j.judged_event AS event, j.outcome, j.from_status,
      coalesce(j.new_status, j.from_status) AS status, j.host_id
    FROM judged j`;
}
