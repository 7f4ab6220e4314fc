// Statements of leases, labels and images that read, or write what is no state; those that change leases are in transitions/.

import type { Lease, LeaseEventEntry, LeaseLabelPolicy, LeaseState } from "@holdfast/contracts/endpoints/leases";
import type { TaskFailure } from "@holdfast/contracts/node/protocol";
import type { VmAccelerator } from "@holdfast/contracts/node/vm-host";
import type { VmProfile } from "@holdfast/contracts/vm/profiles";
import type { AuditActor } from "../audit/record.ts";
import type { Queryable, Tx } from "../database/connect.ts";
import type { Revision } from "../mechanisms/awaiting.ts";
import type { FollowedLease } from "./compare.ts";
import type { WantedVm } from "./place.ts";
import type { CatalogueImage } from "./resolve.ts";
import { isOnHost, isWaiting } from "./transitions/sql.ts";

export type LeaseRow = AuditActor & {
  id: string;
  org_id: string;
  label: string | null;
  image_id: string;
  image_sha256: string;
  profile: VmProfile;
  vcpus: number;
  memory_mib: number;
  disk_gib: number;
  arch: string | null;
  accelerator: VmAccelerator | null;
  ttl_seconds: number;
  connect_seconds: number;
  grace_seconds: number;
  status: LeaseState;
  revision: number;
  generation: number;
  host_id: string | null;
  host_name: string | null;
  host_retired: boolean | null;
  vm_id: string | null;
  launch_task_id: string | null;
  launch_settled: boolean;
  work: string | null;
  reason: TaskFailure | null;
  correlation_id: string;
  created_at: Date;
  wait_until: Date;
  placed_at: Date | null;
  expires_at: Date | null;
  booted_at: Date | null;
  connect_deadline_at: Date | null;
  connected_at: Date | null;
  disconnected_at: Date | null;
  running_at: Date | null;
  finished_at: Date | null;
};

const columns = (db: Queryable) => db`
  l.id, l.org_id, l.label, l.image_id, l.image_sha256, l.profile, l.vcpus, l.memory_mib, l.disk_gib, l.arch, l.accelerator,
  l.ttl_seconds, l.connect_seconds, l.grace_seconds, l.status, l.revision, l.generation, l.host_id, n.name AS host_name,
  n.status = 'retired' AS host_retired, l.vm_id, l.launch_task_id, l.launch_settled, l.work, l.reason, l.correlation_id,
  l.created_at, l.wait_until, l.placed_at, l.expires_at, l.booted_at, l.connect_deadline_at, l.connected_at, l.disconnected_at,
  l.running_at, l.finished_at, l.actor_type, l.actor_id, l.actor_name, l.role`;

export async function selectLease(tx: Queryable, id: string): Promise<LeaseRow | undefined> {
  const [row] = await tx<LeaseRow[]>`
    SELECT ${columns(tx)} FROM vm_leases l LEFT JOIN nodes n ON n.id = l.host_id WHERE l.id = ${id}`;
  return row;
}

export async function selectLeases(
  tx: Tx,
  page: { before: string; limit: number; status?: LeaseState; live?: boolean; hostId?: string; label?: string },
): Promise<LeaseRow[]> {
  return tx<LeaseRow[]>`
    SELECT ${columns(tx)} FROM vm_leases l LEFT JOIN nodes n ON n.id = l.host_id
    WHERE l.id < ${page.before}
      ${page.status === undefined ? tx`` : tx`AND l.status = ${page.status}`}
      ${page.live === undefined ? tx`` : tx`AND (l.finished_at IS NULL) = ${page.live}`}
      ${page.hostId === undefined ? tx`` : tx`AND l.host_id = ${page.hostId}`}
      ${page.label === undefined ? tx`` : tx`AND l.label = ${page.label}`}
    ORDER BY l.id DESC LIMIT ${page.limit + 1}`;
}

const time = (at: Date | null) => at?.toISOString() ?? null;

export function toLease(row: LeaseRow): Lease {
  return {
    ...{
      id: row.id,
      status: row.status,
      label: row.label,
      image_id: row.image_id,
      image_sha256: row.image_sha256,
    },
    ...{ profile: row.profile, vcpus: row.vcpus, memory_mib: row.memory_mib, disk_gib: row.disk_gib },
    ...{ arch: row.arch, accelerator: row.accelerator, host_id: row.host_id, host_name: row.host_name },
    ...{ vm_id: row.vm_id, generation: row.generation, work: row.work, reason: row.reason },
    ...{ created_by: row.actor_name, correlation_id: row.correlation_id, ttl_seconds: row.ttl_seconds },
    created_at: row.created_at.toISOString(),
    wait_until: row.wait_until.toISOString(),
    placed_at: time(row.placed_at),
    booted_at: time(row.booted_at),
    connect_deadline_at: time(row.connect_deadline_at),
    connected_at: time(row.connected_at),
    disconnected_at: time(row.disconnected_at),
    running_at: time(row.running_at),
    expires_at: time(row.expires_at),
    finished_at: time(row.finished_at),
    revision: row.revision,
  };
}

export async function selectTimeline(tx: Queryable, leaseId: string): Promise<LeaseEventEntry[]> {
  const rows = await tx<(Omit<LeaseEventEntry, "at"> & { at: Date })[]>`
    SELECT at, event, from_status AS from, to_status AS to, generation, message FROM vm_lease_events
    WHERE lease_id = ${leaseId} ORDER BY id LIMIT 500`;
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }));
}

export type StoredPlacement = {
  at: string;
  chosen: { host_id: string; name: string; message: string };
  not_chosen: { host_id: string; name: string; reason: string; message: string }[];
};

export async function selectPlacement(tx: Queryable, leaseId: string): Promise<StoredPlacement | null> {
  const [row] = await tx<{ placement: StoredPlacement | null }[]>`
    SELECT placement FROM vm_leases WHERE id = ${leaseId}`;
  return row?.placement ?? null;
}

const waits = isWaiting();

export type WaitingLease = WantedVm &
  AuditActor & {
    orgId: string;
    ttlSeconds: number;
    connectSeconds: number;
    graceSeconds: number;
    correlationId: string;
    /** Of user data that its host takes by itself; null: it has none. */
    userDataSha256: string | null;
  };

/** The oldest first. */
export async function selectWaiting(db: Queryable, orgId: string, limit: number): Promise<WaitingLease[]> {
  return db<WaitingLease[]>`
    SELECT l.id, l.org_id AS "orgId", l.label, l.image_id AS "imageId", l.image_sha256 AS "imageSha256", l.arch, l.accelerator,
      l.vcpus, l.memory_mib AS "memoryMib", l.disk_gib AS "diskGib", l.ttl_seconds AS "ttlSeconds",
      l.connect_seconds AS "connectSeconds", l.grace_seconds AS "graceSeconds", l.correlation_id AS "correlationId",
      (SELECT u.sha256 FROM vm_lease_user_data u WHERE u.lease_id = l.id) AS "userDataSha256",
      l.actor_type, l.actor_id, l.actor_name, l.role,
      (SELECT i.url FROM vm_images i WHERE i.org_id = l.org_id AND i.id = l.image_id AND i.sha256 = l.image_sha256) AS "imageUrl"
    FROM vm_leases l WHERE l.org_id = ${orgId} AND ${waits} AND l.wait_until > now() ORDER BY l.id LIMIT ${limit}`;
}

export async function selectWaitingOrgs(db: Queryable): Promise<string[]> {
  const rows = await db<{ org_id: string }[]>`SELECT DISTINCT l.org_id FROM vm_leases l WHERE ${waits}`;
  return rows.map(({ org_id }) => org_id);
}

const onHost = isOnHost();

export type FollowedRow = FollowedLease & { host_id: string };

export async function selectOnHosts(db: Queryable, hostIds: readonly string[]): Promise<FollowedRow[]> {
  return db<FollowedRow[]>`
    SELECT l.id, l.host_id, l.vm_id, l.status, l.launch_settled, l.booted_at, l.connected_at, l.disconnected_at, l.image_id,
      l.connect_seconds, l.grace_seconds, l.ttl_seconds, n.name AS host_name
    FROM vm_leases l JOIN nodes n ON n.id = l.host_id WHERE l.host_id = ANY (${[...hostIds]}::uuid[]) AND ${onHost}`;
}

export async function selectLabels(tx: Queryable): Promise<LeaseLabelPolicy[]> {
  return tx<LeaseLabelPolicy[]>`
    SELECT label, image_id, profile, arch, accelerator, max_leases FROM vm_labels ORDER BY label`;
}

export async function upsertLabel(tx: Tx, orgId: string, one: LeaseLabelPolicy): Promise<void> {
  await tx`
    INSERT INTO vm_labels (org_id, label, image_id, profile, arch, accelerator, max_leases)
    VALUES (${orgId}, ${one.label}, ${one.image_id}, ${one.profile}, ${one.arch}, ${one.accelerator}, ${one.max_leases})
    ON CONFLICT (org_id, label) DO UPDATE SET image_id = excluded.image_id, profile = excluded.profile, arch = excluded.arch,
      accelerator = excluded.accelerator, max_leases = excluded.max_leases`;
}

export async function deleteLabel(tx: Tx, label: string): Promise<boolean> {
  const { count } = await tx`DELETE FROM vm_labels WHERE label = ${label}`;
  return count === 1;
}

/** With `lock`, none of them changes until the transaction ends: a lease that names one and its retirement exclude each other. */
export async function selectImages(tx: Queryable, { lock = false } = {}): Promise<CatalogueImage[]> {
  return tx<CatalogueImage[]>`
    SELECT id, sha256, retired_at FROM vm_images ORDER BY id ${lock ? tx`FOR SHARE` : tx``}`;
}

/** Reads all leases that are awaited in this process, in one statement. */
export async function selectRevisions(sql: Queryable, ids: readonly string[]): Promise<Revision[]> {
  return sql<Revision[]>`
    SELECT id, revision, finished_at IS NOT NULL AS ended FROM vm_leases WHERE id = ANY (${[...ids]}::uuid[])`;
}
