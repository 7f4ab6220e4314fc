// Hosts as placement sees them: what the control plane counts, joined with what the last heartbeat reports.

import type { VmHostReport } from "@holdfast/contracts/node/vm-host";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import type { Queryable } from "../database/connect.ts";
import { freshnessOf } from "../nodes/presence/freshness.ts";
import { type ImageOrder, percentOf, selectImageOrders } from "./image-orders.ts";
import type { HostFetch, HostView, Taken } from "./place.ts";
import { isOnHost } from "./transitions/sql.ts";

export type HostRow = {
  node_id: string;
  org_id: string;
  name: string;
  node_status: string;
  revoked: boolean;
  enabled: boolean;
  leases: number;
  reserved_vcpus: number;
  reserved_memory_mib: number;
  reserved_disk_gib: number;
  heartbeat_at: Date | null;
  age_ms: number | null;
  disconnected_ms: number | null;
  os: { family: string; flavour: string; version: string } | null;
  arch: string | null;
  report: VmHostReport | null;
  inventory_at: Date | null;
  strays: { kind: string; name: string; vm_id: string | null; action: string; why: string }[] | null;
};

/** With `nodeId`, only that one. Retired nodes are left out unless they are asked for. */
export async function selectHosts(db: Queryable, of: { orgId: string; nodeId?: string }): Promise<HostRow[]> {
  return db<HostRow[]>`
    SELECT n.id AS node_id, n.org_id, n.name, n.status AS node_status, n.revoked_at IS NOT NULL AS revoked,
      h.enabled, h.leases, h.reserved_vcpus, h.reserved_memory_mib, h.reserved_disk_gib, h.inventory_at, h.strays,
      p.heartbeat_at, (extract(epoch FROM now() - p.heartbeat_at) * 1000)::float8 AS age_ms,
      (extract(epoch FROM now() - p.disconnected_at) * 1000)::float8 AS disconnected_ms,
      p.heartbeat #> '{facts,os}' AS os, p.heartbeat #>> '{facts,arch}' AS arch, p.heartbeat -> 'vm_host' AS report
    FROM vm_hosts h JOIN nodes n ON n.id = h.node_id LEFT JOIN node_presence p ON p.node_id = n.id
    WHERE h.org_id = ${of.orgId}
      AND ${of.nodeId === undefined ? db`n.status <> 'retired'` : db`h.node_id = ${of.nodeId}`}
    ORDER BY n.name, n.id`;
}

const none = { vcpus: 0, memory_mib: 0, disk_mib: 0 };
const NOT_REPORTED =
  "its agent does not run VMs now. Install QEMU and set HOLDFAST_VM_HOST=on there; the agent's log says what is missing.";

export function toView(row: HostRow, staleAfterSeconds: number, orders: readonly ImageOrder[] = []): HostView {
  const { report } = row;
  const allocatable = report?.capacity.allocatable ?? none;
  return {
    id: row.node_id,
    name: row.name,
    standing: row.revoked ? "revoked" : row.node_status,
    enabled: row.enabled,
    freshness: freshnessOf(
      { ageMs: row.age_ms ?? undefined, disconnectedMs: row.disconnected_ms ?? undefined },
      staleAfterSeconds,
    ),
    arch: row.arch ?? "unknown",
    accelerator: report?.accelerator ?? null,
    accelerators: report?.accelerators.filter(({ usable }) => usable).map(({ name }) => name) ?? [],
    problem: report === null ? NOT_REPORTED : report.problem,
    allocatable: { vcpus: allocatable.vcpus, memoryMib: allocatable.memory_mib, diskMib: allocatable.disk_mib },
    mostVms: report?.capacity.most_vms ?? 0,
    images: report?.images ?? [],
    imageSources: report?.image_sources ?? [],
    warm: report?.warm_vms ?? [],
    fetches: new Map(
      orders.flatMap((order) => {
        const fetch = order.node_id === row.node_id ? fetchOf(order) : undefined;
        return fetch ? [[order.image_id, fetch] as const] : [];
      }),
    ),
    reserved: {
      vcpus: row.reserved_vcpus,
      memoryMib: row.reserved_memory_mib,
      diskMib: row.reserved_disk_gib * 1024,
    },
    leases: row.leases,
  };
}

function fetchOf(order: ImageOrder): HostFetch | undefined {
  // One that is being removed can be fetched when that has ended.
  if (order.task_id !== null)
    return { state: "fetching", percent: order.action === "fetch" ? percentOf(order) : null };
  if (order.action === "remove" || (order.retry_at?.getTime() ?? 0) <= Date.now()) return undefined;
  return { state: "failed", message: [order.failure?.message, order.failure?.next_step].join(" ") };
}

/** Hosts of an organization as placement sees them. */
export async function selectViews(db: Queryable, orgId: string, staleAfterSeconds: number): Promise<HostView[]> {
  const orders = await selectImageOrders(db, orgId);
  return (await selectHosts(db, { orgId })).map((row) => toView(row, staleAfterSeconds, orders));
}

/** Without VMs that a lease has or had: the host reports them until its next heartbeat. A VM is in one lease only. */
export async function withoutUsedVms(system: Queryable, hosts: readonly HostView[]): Promise<HostView[]> {
  const reported = hosts.flatMap(({ warm }) => warm?.map(({ vm_id }) => vm_id) ?? []);
  if (reported.length === 0) return [...hosts];
  const used = new Set(
    (await system<{ vm_id: string }[]>`SELECT vm_id FROM vm_leases WHERE vm_id = ANY (${reported}::uuid[])`).map(
      ({ vm_id }) => vm_id,
    ),
  );
  return hosts.map((host) => ({ ...host, warm: host.warm?.filter(({ vm_id }) => !used.has(vm_id)) ?? [] }));
}

const onHost = isOnHost();

export async function selectTaken(db: Queryable, orgId: string): Promise<Taken> {
  const [total] = await db<{ leases: number }[]>`
    SELECT coalesce(sum(leases), 0)::int AS leases FROM vm_hosts WHERE org_id = ${orgId}`;
  const labels = await db<{ label: string; most: number | null; used: number }[]>`
    SELECT b.label, b.max_leases AS most,
      (SELECT count(*)::int FROM vm_leases l WHERE l.org_id = b.org_id AND l.label = b.label AND ${onHost}) AS used
    FROM vm_labels b WHERE b.org_id = ${orgId}`;
  return {
    total: total?.leases ?? 0,
    labels: new Map(labels.map(({ label, used, most }) => [label, { used, most }])),
  };
}

/** Nodes that report themselves as VM hosts become hosts, enabled. Returns how many were new. */
export async function discoverHosts(system: Queryable): Promise<number> {
  const made = await system`
    INSERT INTO vm_hosts (node_id, org_id)
    SELECT n.id, n.org_id FROM nodes n JOIN node_presence p ON p.node_id = n.id
    WHERE n.status <> 'retired' AND NOT EXISTS (SELECT FROM vm_hosts h WHERE h.node_id = n.id)
      AND EXISTS (SELECT FROM json_array_elements_text(p.heartbeat #> '{facts,capabilities}') AS c (name) WHERE c.name = ${VM_HOST})
    ORDER BY n.id ON CONFLICT DO NOTHING`;
  return made.count;
}
