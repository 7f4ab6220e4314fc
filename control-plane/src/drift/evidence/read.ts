// What is known of nodes: stored observations, and what is kept elsewhere because it changes with every heartbeat.

import type { Queryable } from "../../database/connect.ts";
import { positionOf } from "../../nodes/directory/state.ts";
import type { Observation } from "./observation.ts";
import { type PlatformRow, platformOf } from "./platform.ts";

type NodeRow = {
  id: string;
  status: "enrolling" | "active" | "draining" | "quarantined" | "retired";
  status_reason: string | null;
  revoked_at: Date | null;
  created_at: Date;
  status_changed_at: Date;
  heartbeat_at: Date | null;
  /** The last heartbeat says how the agent is set up. */
  reports_setup: boolean;
  disconnected_at: Date | null;
  disconnected_why: string | null;
  heartbeat_id: string | null;
  instance_id: string | null;
  /** Of the certificate that the last heartbeat came with. */
  heartbeat_serial: string | null;
  clock_skew_ms: number | null;
  not_before: Date | null;
  not_after: Date | null;
  issued_at: Date | null;
  token_issued_at: Date | null;
  token_expires_at: Date | null;
  serial: string | null;
  issued_for: string | null;
};
type ObservationRow = {
  id: string;
  node_id: string;
  kind: string;
  key: string;
  value: string;
  observer: string;
  detail: Observation["detail"] | null;
  observed_at: Date;
  seen_at: Date;
  received_at: Date;
  correlation_id: string | null;
};

/** By node; those that do not exist are left out. `platform`: what is known of the platform, which tenants' roles cannot read. */
export async function readEvidence(
  db: Queryable,
  ids: readonly string[],
  platform: readonly PlatformRow[],
): Promise<Map<string, Observation[]>> {
  const nodes = await db<NodeRow[]>`
    SELECT n.id, n.status, n.status_reason, n.revoked_at, n.created_at, n.status_changed_at, p.heartbeat_at, p.disconnected_at,
           p.disconnected_why, p.correlation_id AS heartbeat_id, p.clock_skew_ms,
           p.heartbeat->'setup' IS NOT NULL AS reports_setup, p.instance_id,
           p.heartbeat #>> '{certificate,serial}' AS heartbeat_serial, c.not_before, c.not_after, c.issued_at, c.serial,
           c.issued_for, t.issued_at AS token_issued_at, t.expires_at AS token_expires_at
    FROM nodes n LEFT JOIN node_presence p ON p.node_id = n.id
    LEFT JOIN LATERAL (
      SELECT not_before, not_after, issued_at, serial, issued_for FROM node_certificates
      WHERE node_id = n.id AND revoked_at IS NULL ORDER BY not_after DESC LIMIT 1) c ON true
    LEFT JOIN LATERAL (
      SELECT issued_at, expires_at FROM recovery_tokens
      WHERE node_id = n.id AND revoked_at IS NULL AND held_at IS NOT NULL ORDER BY seq DESC LIMIT 1) t ON true
    WHERE n.id = ANY(${ids as string[]}::uuid[])`;
  const observed = await db<ObservationRow[]>`
    SELECT id, node_id, kind, key, value, observer, detail, observed_at, seen_at, received_at, correlation_id
    FROM node_observations
    WHERE node_id = ANY(${ids as string[]}::uuid[]) AND replaced_at IS NULL`;
  const evidence = new Map(
    nodes.map((node) => [node.id, [...keptElsewhere(node), ...platformOf(platform, node.heartbeat_at)]]),
  );
  const byId = new Map(nodes.map((node) => [node.id, node]));
  for (const row of observed) {
    const node = byId.get(row.node_id);
    if (node && !isWithdrawn(row, node)) evidence.get(row.node_id)?.push(observationOf(row));
  }
  return evidence;
}

const ofSetup: ReadonlySet<string> = new Set(["profile", "disk"]);

/** After a rollback to an agent that does not report it, nobody would ever replace what the newer one reported. */
function isWithdrawn({ kind, seen_at }: ObservationRow, { reports_setup, heartbeat_at }: NodeRow): boolean {
  return !reports_setup && ofSetup.has(kind) && heartbeat_at !== null && heartbeat_at > seen_at;
}

function observationOf(row: ObservationRow): Observation {
  const { key, observed_at, seen_at, received_at, detail, correlation_id } = row;
  return {
    ...{ id: row.id, kind: row.kind, value: row.value, observer: row.observer },
    ...(key === "" ? {} : { key }),
    ...{ observedAt: seen_at.getTime(), firstAt: observed_at.getTime(), receivedAt: received_at.getTime() },
    ...{ detail: detail ?? undefined, correlationId: correlation_id ?? undefined },
  } as Observation;
}

/** Their ids name where they are kept, as there is one of each for a node. */
function keptElsewhere(node: NodeRow): Observation[] {
  const found: Observation[] = [];
  const add = (one: Pick<Observation, "kind" | "value" | "observer" | "detail" | "correlationId">, at: Date) => {
    const times = { observedAt: at.getTime(), receivedAt: at.getTime() };
    found.push({ id: `${one.kind}:${node.id}`, ...one, ...times } as Observation);
  };
  const standing = positionOf(node);
  add(
    {
      ...{ kind: "standing", value: standing, observer: "control_plane" },
      detail: node.status_reason ? { text: `Reason given: ${node.status_reason}` } : undefined,
    },
    standing === "enrolling" ? node.created_at : node.status_changed_at,
  );
  if (node.heartbeat_at) {
    const correlationId = node.heartbeat_id ?? undefined;
    const link = { instance_id: node.instance_id, serial: node.heartbeat_serial };
    add(
      { kind: "heartbeat", value: "received", observer: "agent", correlationId, detail: link },
      node.heartbeat_at,
    );
    const detail = { skew_ms: node.clock_skew_ms };
    add({ kind: "clock", value: "measured", observer: "agent", detail }, node.heartbeat_at);
  }
  if (node.disconnected_at) {
    const detail = { why: node.disconnected_why };
    // An outage is in the audit under the id of the last heartbeat before it.
    const correlationId = node.heartbeat_id ?? undefined;
    add(
      { kind: "connection", value: "closed", observer: "control_plane", detail, correlationId },
      node.disconnected_at,
    );
  }
  if (node.not_before && node.not_after && node.issued_at) {
    const times = { not_before: node.not_before.getTime(), not_after: node.not_after.getTime() };
    const detail = { ...times, serial: node.serial, issued_for: node.issued_for };
    add({ kind: "certificate", value: "issued", observer: "control_plane", detail }, node.issued_at);
  }
  if (node.token_issued_at && node.token_expires_at) {
    const detail = { expires_at: node.token_expires_at.getTime() };
    add({ kind: "recovery_token", value: "current", observer: "control_plane", detail }, node.token_issued_at);
  } else if (node.issued_at) {
    add({ kind: "recovery_token", value: "missing", observer: "control_plane" }, node.issued_at);
  }
  return found;
}
