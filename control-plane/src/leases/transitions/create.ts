// Stores a new lease, which waits for a host. The audit event is that of the request.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { AuditActor } from "../../audit/record.ts";
import type { Tx } from "../../database/connect.ts";
import type { ResolvedRequest } from "../resolve.ts";
import { initialState } from "./sql.ts";

export type NewLease = ResolvedRequest & {
  id: string;
  orgId: string;
  ttlSeconds: number;
  waitSeconds: number;
  connectSeconds: number;
  graceSeconds: number;
  correlationId: string;
};

export async function insertLease(tx: Tx, lease: NewLease, by: AuditActor): Promise<void> {
  await tx`
    WITH made AS (
      INSERT INTO vm_leases (id, org_id, label, image_id, image_sha256, profile, vcpus, memory_mib, disk_gib, arch, accelerator,
        ttl_seconds, connect_seconds, grace_seconds, status, actor_type, actor_id, actor_name, role, correlation_id, wait_until)
      VALUES (${lease.id}, ${lease.orgId}, ${lease.label}, ${lease.imageId}, ${lease.imageSha256}, ${lease.profile},
        ${lease.vcpus}, ${lease.memoryMib}, ${lease.diskGib}, ${lease.arch}, ${lease.accelerator}, ${lease.ttlSeconds},
        ${lease.connectSeconds}, ${lease.graceSeconds}, ${initialState}, ${by.actor_type}, ${by.actor_id}, ${by.actor_name},
        ${by.role}, ${lease.correlationId}, now() + ${lease.waitSeconds} * interval '1 second')
      RETURNING id, org_id, status
    )
    INSERT INTO vm_lease_events (id, lease_id, org_id, event, from_status, to_status, generation)
    SELECT ${uuidv7()}, id, org_id, 'request', NULL, status, 0 FROM made`;
}
