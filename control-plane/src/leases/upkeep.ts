// Upkeep of leases: corrects what is counted for hosts, and removes leases that ended long ago. The recount should find nothing:
// every statement that gives a lease to a host or takes it away counts, too.

import type { Log } from "@holdfast/service/log";
import type { Queryable, Sql } from "../database/connect.ts";
import { firstIdAt } from "../tasks/remove-old.ts";
import { isOnHost } from "./transitions/sql.ts";

const onHost = isOnHost();

const counted = (db: Queryable) => db`
  SELECT l.host_id, count(*)::integer AS leases, sum(l.vcpus)::integer AS vcpus, sum(l.memory_mib)::integer AS memory_mib,
    sum(l.disk_gib)::integer AS disk_gib
  FROM vm_leases l WHERE ${onHost} GROUP BY l.host_id`;

const differs = (db: Queryable) => db`
  (h.leases, h.reserved_vcpus, h.reserved_memory_mib, h.reserved_disk_gib)
    IS DISTINCT FROM (coalesce(c.leases, 0), coalesce(c.vcpus, 0), coalesce(c.memory_mib, 0), coalesce(c.disk_gib, 0))`;

export async function miscountedHosts(db: Queryable): Promise<string[]> {
  const rows = await db<{ node_id: string }[]>`
    SELECT h.node_id FROM vm_hosts h LEFT JOIN (${counted(db)}) AS c ON c.host_id = h.node_id WHERE ${differs(db)}`;
  return rows.map(({ node_id }) => node_id);
}

export async function recountHosts(system: Sql, log: Log): Promise<{ corrected: number }> {
  let corrected = 0;
  for (const id of await miscountedHosts(system)) {
    // Whoever gives or takes a lease locks the host first: what is counted under the lock is exact.
    const changed = await system.begin(async (tx) => {
      await tx`SELECT FROM vm_hosts WHERE node_id = ${id} FOR NO KEY UPDATE`;
      const { count } = await tx`
        UPDATE vm_hosts h SET leases = coalesce(c.leases, 0), reserved_vcpus = coalesce(c.vcpus, 0),
          reserved_memory_mib = coalesce(c.memory_mib, 0), reserved_disk_gib = coalesce(c.disk_gib, 0)
        FROM (SELECT ${id}::uuid AS node_id) AS one LEFT JOIN (${counted(tx)}) AS c ON c.host_id = one.node_id
        WHERE h.node_id = one.node_id AND ${differs(tx)}`;
      return count === 1;
    });
    if (!changed) continue;
    corrected += 1;
    log.warn({ node_id: id }, "what leases have reserved on a host was counted wrongly, and is corrected");
  }
  return { corrected };
}

const BATCH = 500;

/** Ids are ordered by time, as of tasks. */
export async function removeOldLeases(system: Sql, options: { days: number; now?: Date }): Promise<number> {
  const before = new Date((options.now ?? new Date()).getTime() - options.days * 86_400_000);
  let removed = 0;
  for (;;) {
    const { count } = await system`
      DELETE FROM vm_leases WHERE id IN (
        SELECT id FROM vm_leases WHERE id < ${firstIdAt(before)} AND finished_at < ${before}
        ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)`;
    removed += count;
    if (count < BATCH) return removed;
  }
}
