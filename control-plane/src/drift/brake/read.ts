// Whether the brake holds now, from what is stored. Whoever is about to act on many nodes asks here: notifications, and every
// quarantine that is not for a proven clone.

import type { Queryable } from "../../database/connect.ts";
import { freshForMs } from "../evidence/observation.ts";
import { outageOf, type PlatformRow, readPlatform } from "../evidence/platform.ts";
import { type BrakePolicy, defaultBrakePolicy } from "../policy.ts";
import { type Brake, decideBrake } from "./decide.ts";

/** `known`: of the platform, if it was read already. Two statements at most; all nodes are read, 20 ms for 10,000. */
export async function readBrake(
  db: Queryable,
  known?: readonly PlatformRow[],
  policy: BrakePolicy = defaultBrakePolicy,
): Promise<Brake> {
  const platform = known ?? (await readPlatform(db));
  const { now, ...counted } = await countLost(db, policy);
  const trust = platform.find(({ kind }) => kind === "ca_trust");
  const isFresh = trust !== undefined && now.getTime() - trust.seen_at.getTime() < (freshForMs.ca_trust ?? 0);
  const outage = outageOf(platform);
  return decideBrake(
    {
      ...{ now: now.getTime(), ...counted, caMismatch: isFresh && trust.value === "mismatch" },
      outage: outage
        ? { from: outage.observed_at.getTime(), to: outage.isOver ? outage.seen_at.getTime() : null }
        : null,
    },
    policy,
  );
}

type Counted = { now: Date; nodes: number; lost: number };

async function countLost(db: Queryable, { lostWithinMs, lateAfterMs }: BrakePolicy): Promise<Counted> {
  const within = `${lostWithinMs} milliseconds`;
  const [row] = await db<Counted[]>`
    SELECT now() AS now, count(*)::integer AS nodes, count(*) FILTER (WHERE
        (p.heartbeat_at > now() - ${within}::interval
          AND (p.disconnected_at IS NOT NULL OR p.heartbeat_at < now() - ${`${lateAfterMs} milliseconds`}::interval))
        OR r.at > p.heartbeat_at)::integer AS lost
    FROM nodes n JOIN node_presence p ON p.node_id = n.id LEFT JOIN (
      SELECT actor_id, max(last_seen_at) AS at FROM audit_failures
      WHERE action = 'node.connect' AND last_seen_at > now() - ${within}::interval GROUP BY actor_id
    ) r ON r.actor_id = n.id
    WHERE n.status IN ('active', 'draining') AND n.revoked_at IS NULL`;
  if (!row) throw new Error("an aggregate returned no row");
  return row;
}
