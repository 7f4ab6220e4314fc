// SQL of the fleet as a whole. Runs confined to one organization. PostgreSQL takes 50 µs to find a field in a
// heartbeat, and half a second for those of 10,000 nodes: so heartbeats are only read of nodes that may have changed.

import type { Heartbeat, NodeStatus } from "@holdfast/contracts/node/protocol";
import type { Tx } from "../database/connect.ts";

export type FleetRow = {
  id: string;
  name: string;
  status: NodeStatus;
  status_reason: string | null;
  status_changed_at: Date;
  revoked_at: Date | null;
  created_at: Date;
  heartbeat_at: Date | null;
  instance_id: string | null;
  disconnected_at: Date | null;
  clock_skew_ms: number | null;
  /** The heartbeat may say that something is wrong. */
  may_have_findings: boolean;
  /** The last time that a certificate of the node was refused. */
  refused_at: Date | null;
  refused_code: string | null;
  /** When this was read, by the clock that `heartbeat_at` is of. */
  read_at: Date;
};

/** As JSON.stringify writes it. Within a text of the heartbeat its quotes would be escaped, so nobody can fake it. */
const NO_FINDINGS = '"findings":[]';

/** Reads both tables from end to end: 30 ms for 10,000. */
export async function selectFleet(tx: Tx): Promise<FleetRow[]> {
  return tx<FleetRow[]>`
    SELECT n.id, n.name, n.status, n.status_reason, n.status_changed_at, n.revoked_at, n.created_at,
           p.heartbeat_at, p.instance_id, p.disconnected_at, p.clock_skew_ms, now() AS read_at, r.at AS refused_at, r.code AS refused_code,
           coalesce(strpos(p.heartbeat::text, ${NO_FINDINGS}) = 0, false) AS may_have_findings
    FROM nodes n LEFT JOIN node_presence p ON p.node_id = n.id LEFT JOIN node_refusals r ON r.node_id = n.id
    WHERE n.status <> 'retired'`;
}

export type HeartbeatRow = { node_id: string; heartbeat: Heartbeat };

export async function selectHeartbeats(tx: Tx, ids: readonly string[]): Promise<HeartbeatRow[]> {
  return tx<HeartbeatRow[]>`
    SELECT node_id, heartbeat FROM node_presence WHERE node_id = ANY(${ids as string[]}::uuid[])`;
}
