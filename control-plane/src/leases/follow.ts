// Follows what hosts report about their VMs in heartbeats. A heartbeat is compared with the leases of its host once; what it says
// about leases is applied, and a VM that no lease has is terminated by its id. The host removes only what carries its own tag.

import { ApiError } from "@holdfast/contracts/errors";
import type { ReportedVm } from "@holdfast/contracts/node/vm-host";
import { uuidv7 } from "@holdfast/kit/uuid";
import { recordAudit, systemActor } from "../audit/record.ts";
import type { Queryable } from "../database/connect.ts";
import { compareReport } from "./compare.ts";
import type { Advancing } from "./parts.ts";
import { selectOnHosts } from "./queries.ts";
import { applyEvents } from "./transitions/apply.ts";

type Reporting = { node_id: string; org_id: string; name: string; heartbeat_at: Date; vms: ReportedVm[] };

const MOST = 200;

/** Returns how many leases have changed. */
export async function followHosts(parts: Advancing): Promise<number> {
  const { system, onMoved } = parts;
  const hosts = await selectReporting(system);
  if (hosts.length === 0) return 0;
  const leases = Map.groupBy(
    await selectOnHosts(
      system,
      hosts.map(({ node_id }) => node_id),
    ),
    ({ host_id }) => host_id,
  );
  const compared = hosts.map((host) => ({
    host,
    ...compareReport(host.vms, leases.get(host.node_id) ?? [], host.heartbeat_at),
  }));
  let changed = 0;
  for (const round of [0, 1] as const) {
    const applied = await applyEvents(
      system,
      compared.flatMap(({ rounds }) => rounds[round]),
    );
    for (const { id, outcome } of applied) {
      if (outcome !== "moved" && outcome !== "noted") continue;
      onMoved(id, undefined);
      changed += 1;
    }
  }
  for (const { host, strays } of compared) for (const vmId of strays) await removeStray(parts, host, vmId);
  // Only now: after a crash before this, the same heartbeat is compared again.
  await system`
    UPDATE vm_hosts h SET followed_at = f.heartbeat_at
    FROM unnest(${hosts.map(({ node_id }) => node_id)}::uuid[], ${hosts.map(({ heartbeat_at }) => heartbeat_at)}::timestamptz[])
      AS f (node_id, heartbeat_at)
    WHERE h.node_id = f.node_id`;
  return changed;
}

async function selectReporting(system: Queryable): Promise<Reporting[]> {
  return system<Reporting[]>`
    SELECT h.node_id, h.org_id, n.name, date_trunc('milliseconds', p.heartbeat_at) AS heartbeat_at,
      p.heartbeat #> '{vm_host,vms}' AS vms
    FROM vm_hosts h JOIN node_presence p ON p.node_id = h.node_id JOIN nodes n ON n.id = h.node_id
    WHERE n.status <> 'retired' AND p.heartbeat #> '{vm_host,vms}' IS NOT NULL
      AND h.followed_at IS DISTINCT FROM date_trunc('milliseconds', p.heartbeat_at)
    ORDER BY h.node_id LIMIT ${MOST}`;
}

const BY = systemActor("leases");

type Stray = { lease_id: string | null; generation: number | null };

/** Undefined: a lease has it, had it until after the heartbeat, or it is being removed already. */
async function findStray(tx: Queryable, host: Reporting, vmId: string): Promise<Stray | undefined> {
  const [row] = await tx<Stray[]>`
    SELECT e.lease_id, e.generation FROM (SELECT 1) AS one
    LEFT JOIN vm_lease_events e ON e.vm_id = ${vmId} AND e.org_id = ${host.org_id}
    WHERE NOT EXISTS (
        SELECT FROM vm_leases l WHERE l.vm_id = ${vmId} AND (l.finished_at IS NULL OR l.finished_at >= ${host.heartbeat_at}))
      AND NOT EXISTS (
        SELECT FROM vm_strays s JOIN tasks t ON t.id = s.task_id
        WHERE s.node_id = ${host.node_id} AND s.vm_id = ${vmId} AND t.finished_at IS NULL)
    LIMIT 1`;
  return row;
}

async function removeStray({ system, tasks, log }: Advancing, host: Reporting, vmId: string): Promise<void> {
  try {
    const removal = await system.begin(async (tx) => {
      // Replicas find the same one: the second of them sees the task of the first.
      await tx`SELECT FROM vm_hosts WHERE node_id = ${host.node_id} FOR NO KEY UPDATE`;
      const stray = await findStray(tx, host, vmId);
      if (!stray) return undefined;
      const correlationId = uuidv7();
      const wanted = {
        nodeId: host.node_id,
        type: "vm.terminate",
        params: { vm_id: vmId },
        by: BY,
        correlationId,
      };
      const made = await tasks.enqueue(tx, { ...wanted, details: { stray: true, lease_id: stray.lease_id } });
      await tx`
        INSERT INTO vm_strays (node_id, org_id, vm_id, task_id) VALUES (${host.node_id}, ${host.org_id}, ${vmId}, ${made.id})
        ON CONFLICT (node_id, vm_id) DO UPDATE SET task_id = excluded.task_id`;
      await recordAudit(tx, log, {
        ...{ orgId: host.org_id, by: BY, action: "host.remove_stray", result: "allowed", correlationId },
        target: { type: "node", id: host.node_id, name: host.name },
        details: { vm_id: vmId, lease_id: stray.lease_id, task_id: made.id, why: "no lease has this VM" },
      });
      return { made, leaseId: stray.lease_id };
    });
    if (!removal) return;
    tasks.enqueued(removal.made);
    if (removal.leaseId === null) return;
    // Of an earlier placement it is evidence in the timeline of the lease.
    const message = `${host.name} has the VM ${vmId} of an earlier placement. It is removed.`;
    await applyEvents(system, [{ leaseId: removal.leaseId, event: "vm_exited", vmId, message }]);
  } catch (error) {
    // The host takes no tasks now; the next heartbeat reports the VM again.
    if (!(error instanceof ApiError))
      log.warn({ err: error, vm_id: vmId }, "could not remove a VM without a lease");
  }
}
