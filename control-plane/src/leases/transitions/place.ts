// Gives a waiting lease to the host that was chosen for it, and reserves its share of that host. The choice was made from what
// was read before; this statement checks everything again that may have changed since.
//
// Locks: placements of the organization, by `holdPlacements`, because the caps of labels and of the organization concern all
// hosts; the host; then the lease, unless another statement has it.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { Tx } from "../../database/connect.ts";
import type { PlacementPolicy } from "../place.ts";
import { initialState, isOnHost, isWaiting, stateAfter } from "./sql.ts";

export type Placement = {
  leaseId: string;
  hostId: string;
  vmId: string;
  taskId: string;
  /** Why each host was chosen or not. */
  placement: unknown;
};

const waits = isWaiting();
const placed = stateAfter("place");
const onHost = isOnHost("o");

/**
 * One placement of an organization at a time, until the transaction ends. In a statement of its own: the next one sees what was
 * placed before. False: the lease does not wait any more.
 */
export async function holdPlacements(tx: Tx, lease: { id: string; orgId: string }): Promise<boolean> {
  await tx`SELECT pg_advisory_xact_lock(hashtextextended(${`vm placements of ${lease.orgId}`}, 0))`;
  return (await tx`SELECT FROM vm_leases l WHERE l.id = ${lease.id} AND ${waits}`).length === 1;
}

/** False: the host has no room for it any more or takes no VMs, a cap is reached, or the lease has changed. */
export async function placeLease(
  tx: Tx,
  { leaseId, hostId, vmId, taskId, placement }: Placement,
  policy: PlacementPolicy & { staleAfterSeconds: number },
): Promise<boolean> {
  const [row] = await tx<{ id: string }[]>`
    WITH host AS MATERIALIZED (
      SELECT h.node_id, h.org_id, n.name, p.heartbeat #> '{vm_host,capacity}' AS capacity, h.leases, h.reserved_vcpus,
        h.reserved_memory_mib, h.reserved_disk_gib
      FROM vm_hosts h JOIN nodes n ON n.id = h.node_id JOIN node_presence p ON p.node_id = h.node_id
      WHERE h.node_id = ${hostId} AND h.enabled AND n.status = 'active' AND n.revoked_at IS NULL
        AND p.heartbeat_at > now() - ${policy.staleAfterSeconds} * interval '1 second'
        AND p.heartbeat #>> '{vm_host,accelerator}' IS NOT NULL AND p.heartbeat #>> '{vm_host,problem}' IS NULL
      FOR NO KEY UPDATE OF h
    ), lease AS MATERIALIZED (
      SELECT l.id, l.vcpus, l.memory_mib, l.disk_gib, l.label FROM vm_leases l
      WHERE l.id = ${leaseId} AND ${waits} AND l.wait_until > now() AND (SELECT count(*) FROM host) > 0
      FOR NO KEY UPDATE SKIP LOCKED
    ), fits AS MATERIALIZED (
      SELECT l.*, h.node_id, h.name FROM lease l CROSS JOIN host h
      WHERE h.reserved_vcpus + l.vcpus <= (h.capacity #>> '{allocatable,vcpus}')::bigint
        AND h.reserved_memory_mib + l.memory_mib <= (h.capacity #>> '{allocatable,memory_mib}')::bigint
        AND (h.reserved_disk_gib + l.disk_gib) * 1024::bigint <= (h.capacity #>> '{allocatable,disk_mib}')::bigint
        AND h.leases < least((h.capacity #>> '{most_vms}')::bigint, ${policy.mostPerHost}::bigint)
        AND (SELECT coalesce(sum(o.leases), 0) FROM vm_hosts o WHERE o.org_id = h.org_id) < ${policy.mostInTotal}
        AND (l.label IS NULL OR coalesce(
          (SELECT count(*) FROM vm_leases o WHERE o.org_id = h.org_id AND o.label = l.label AND ${onHost})
            < (SELECT b.max_leases FROM vm_labels b WHERE b.org_id = h.org_id AND b.label = l.label), true))
    ), given AS (
      UPDATE vm_leases l SET status = ${placed}, revision = l.revision + 1, generation = l.generation + 1,
        host_id = f.node_id, vm_id = ${vmId}, launch_task_id = ${taskId}, launch_settled = false, reason = NULL,
        placement = ${JSON.stringify(placement)}::text::json, placed_at = now(),
        expires_at = now() + l.ttl_seconds * interval '1 second'
      FROM fits f WHERE l.id = f.id
      RETURNING l.id, l.org_id, l.status, l.generation, l.vcpus, l.memory_mib, l.disk_gib, l.host_id, l.correlation_id,
        l.actor_type, l.actor_id, l.actor_name, l.role, f.name AS host_name
    ), reserved AS (
      UPDATE vm_hosts h SET leases = h.leases + 1, reserved_vcpus = h.reserved_vcpus + g.vcpus,
        reserved_memory_mib = h.reserved_memory_mib + g.memory_mib, reserved_disk_gib = h.reserved_disk_gib + g.disk_gib
      FROM given g WHERE h.node_id = g.host_id
    ), noted AS (
      INSERT INTO vm_lease_events (id, lease_id, org_id, event, from_status, to_status, generation, message, vm_id)
      SELECT ${uuidv7()}, g.id, g.org_id, 'place', ${initialState}, g.status, g.generation, 'Placed on ' || g.host_name || '.',
        ${vmId} FROM given g
    ), audited AS (
      INSERT INTO audit_events (id, org_id, actor_type, actor_id, actor_name, role, action, target_type, target_id,
        target_name, result, correlation_id, details)
      SELECT ${uuidv7()}, g.org_id, g.actor_type, g.actor_id, g.actor_name, g.role, 'lease.place', 'lease', g.id::text, NULL,
        'allowed', g.correlation_id, jsonb_build_object('host_id', g.host_id, 'host', g.host_name, 'vm_id', ${vmId}::text,
          'task_id', ${taskId}::text, 'generation', g.generation)
      FROM given g
    )
    SELECT id FROM given`;
  return row !== undefined;
}
