// Keeps what the last health probe told of each node, whoever asked for it. An observation: a lost one is taken again, so
// its commit does not wait for the disk, nor the node's result for it.

import type { HostHealth } from "@holdfast/contracts/host-health";
import type { Log } from "@holdfast/service/log";
import probe from "@holdfast/tasks/diag.health_probe/contract";
import type { Queryable, Sql } from "../../database/connect.ts";
import type { Accepted } from "../../tasks/results.ts";

/** For the results that a replica takes. */
export function keepHealth(system: Sql, log: Log): (accepted: readonly Accepted[]) => void {
  return (accepted) => {
    const told = accepted.filter(({ type, ending }) => type === probe.type && ending.status === "completed");
    if (told.length === 0) return;
    const latest = new Map(told.map(({ nodeId, ending }) => [nodeId, ending.result]));
    recordHealth(system, latest).catch((error: unknown) =>
      log.warn({ err: error, nodes: latest.size }, "what health probes told was not kept; the next ones are"),
    );
  };
}

/** In order of the ids, so that no two statements wait for each other. */
async function recordHealth(system: Sql, latest: ReadonlyMap<string, unknown>): Promise<void> {
  await system`
    INSERT INTO node_health (node_id, org_id, observed_at, health)
    SELECT n.id, n.org_id, now(), told.health::json
    FROM unnest(${[...latest.keys()]}::uuid[], ${[...latest.values()].map((one) => JSON.stringify(one))}::text[])
      AS told (node_id, health)
    JOIN nodes n ON n.id = told.node_id
    WHERE set_config('synchronous_commit', 'off', true) = 'off'
    ORDER BY n.id
    ON CONFLICT (node_id) DO UPDATE SET observed_at = excluded.observed_at, health = excluded.health`;
}

export type HealthRow = { observed_at: Date; health: HostHealth };

export async function selectHealth(db: Queryable, nodeId: string): Promise<HealthRow | undefined> {
  const [row] = await db<HealthRow[]>`SELECT observed_at, health FROM node_health WHERE node_id = ${nodeId}`;
  return row;
}
