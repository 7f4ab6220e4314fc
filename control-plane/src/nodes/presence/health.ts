// Stores the result of each node's last health probe, whoever requested it. A lost result is measured again, so its commit
// does not wait for the disk, and the node's task result does not wait for the commit.

import type { HostHealth } from "@holdfast/contracts/node/host-health";
import type { Log } from "@holdfast/service/log";
import probe from "@holdfast/tasks/diag.health_probe/contract";
import type { Queryable, Sql } from "../../database/connect.ts";
import type { Accepted } from "../../tasks/results.ts";

/** For the results that a replica takes. */
export function keepHealth(system: Sql, log: Log): (accepted: readonly Accepted[]) => void {
  return (accepted) => {
    const probes = accepted.filter(({ type, ending }) => type === probe.type && ending.status === "completed");
    if (probes.length === 0) return;
    const latest = new Map(probes.map(({ nodeId, ending }) => [nodeId, ending.result]));
    recordHealth(system, latest).catch((error: unknown) =>
      log.warn(
        { err: error, nodes: latest.size },
        "could not store the results of health probes; the next ones are stored again",
      ),
    );
  };
}

/** In order of the ids, so that no two statements wait for each other. */
async function recordHealth(system: Sql, latest: ReadonlyMap<string, unknown>): Promise<void> {
  await system`
    INSERT INTO node_health (node_id, org_id, observed_at, health)
    SELECT n.id, n.org_id, now(), probe.health::json
    FROM unnest(${[...latest.keys()]}::uuid[], ${[...latest.values()].map((one) => JSON.stringify(one))}::text[])
      AS probe (node_id, health)
    JOIN nodes n ON n.id = probe.node_id
    WHERE set_config('synchronous_commit', 'off', true) = 'off'
    ORDER BY n.id
    ON CONFLICT (node_id) DO UPDATE SET observed_at = excluded.observed_at, health = excluded.health`;
}

export type HealthRow = { observed_at: Date; health: HostHealth };

export async function selectHealth(db: Queryable, nodeId: string): Promise<HealthRow | undefined> {
  const [row] = await db<HealthRow[]>`SELECT observed_at, health FROM node_health WHERE node_id = ${nodeId}`;
  return row;
}
