// The lifecycle of a node, and the only code that writes its `status` and `revoked_at`. The table is total;
// transitions that are not allowed carry the reason. A position is a status together with whether the identity is revoked.

import type { NodeStatus } from "@holdfast/contracts/node/protocol";
import type { Tx } from "../../database/connect.ts";

export const positions = ["enrolling", "active", "draining", "quarantined", "revoked", "retired"] as const;
/** `revoked` is quarantined without any accepted certificate; `retired` is the same and cannot be undone. */
export type Position = (typeof positions)[number];

export const nodeEvents = ["heartbeat", "drain", "fence", "reactivate", "revoke", "retire", "enrolled"] as const;
/**
 * - `heartbeat`: a heartbeat arrived;
 * - `enrolled`: the node got a new key with a token that was created for it;
 * - the others: an operator's changes.
 */
export type NodeEvent = (typeof nodeEvents)[number];

export type Refusal = { refused: string };

const bound =
  "It is revoked: make a token with `holdfast node token create --node <id>` and run `holdfast agent join` with it on the machine first.";
const final = "It is retired, which cannot be undone; its machine can come back as a new node only.";
const fenced = "It is fenced already; reactivate it first.";
const noHeartbeatYet = "It has not sent a heartbeat yet; its first heartbeat makes it active.";

/** The position after an event. A repeated change leads to the current position and changes nothing. */
export const lifecycle: Record<Position, Record<NodeEvent, Position | Refusal>> = {
  enrolling: {
    heartbeat: "active",
    drain: { refused: noHeartbeatYet },
    fence: "quarantined",
    reactivate: { refused: noHeartbeatYet },
    revoke: "revoked",
    retire: "retired",
    enrolled: "enrolling",
  },
  active: {
    heartbeat: "active",
    drain: "draining",
    fence: "quarantined",
    reactivate: "active",
    revoke: "revoked",
    retire: "retired",
    enrolled: "active",
  },
  draining: {
    heartbeat: "draining",
    drain: "draining",
    fence: "quarantined",
    reactivate: "active",
    revoke: "revoked",
    retire: "retired",
    enrolled: "draining",
  },
  quarantined: {
    heartbeat: "quarantined",
    drain: { refused: fenced },
    fence: "quarantined",
    reactivate: "active",
    revoke: "revoked",
    retire: "retired",
    enrolled: "quarantined",
  },
  revoked: {
    heartbeat: "revoked",
    drain: { refused: bound },
    fence: "revoked",
    reactivate: { refused: bound },
    revoke: "revoked",
    retire: "retired",
    enrolled: "quarantined",
  },
  retired: {
    heartbeat: "retired",
    drain: { refused: final },
    fence: { refused: final },
    reactivate: { refused: final },
    revoke: { refused: final },
    retire: "retired",
    enrolled: { refused: final },
  },
};

export type StatusRow = {
  id: string;
  org_id: string;
  name: string;
  status: NodeStatus;
  status_reason: string | null;
  revoked_at: Date | null;
};

export function positionOf(row: Pick<StatusRow, "status" | "revoked_at">): Position {
  return row.status === "quarantined" && row.revoked_at !== null ? "revoked" : row.status;
}

export function statusOf(position: Position): NodeStatus {
  return position === "revoked" ? "quarantined" : position;
}

export function isRevoked(position: Position): boolean {
  return position === "revoked" || position === "retired";
}

export type Moved = { from: Position; to: Position; row: StatusRow; revokedSerials: string[] };

/**
 * Locks the node's row, so that changes of one node are serialized. Undefined: the node does not exist.
 * Certificates, recovery tokens and bundles are revoked with the identity, and by a new enrollment, except what it issued.
 */
export async function moveNode(
  tx: Tx,
  nodeId: string,
  event: NodeEvent,
  options: { reason?: string | undefined; keepSerial?: string; keepRecoveryTokens?: boolean } = {},
): Promise<Moved | (Refusal & { row: StatusRow }) | undefined> {
  const [row] = await tx<StatusRow[]>`
    SELECT id, org_id, name, status, status_reason, revoked_at FROM nodes WHERE id = ${nodeId} FOR UPDATE`;
  if (!row) return undefined;
  const from = positionOf(row);
  const to = lifecycle[from][event];
  if (typeof to === "object") return { ...to, row };
  if (from === to && event !== "enrolled") return { from, to, row, revokedSerials: [] };
  const reason = from === to ? row.status_reason : (options.reason ?? reasonAfter(event, row));
  const [changed] = await tx<StatusRow[]>`
    UPDATE nodes SET status = ${statusOf(to)}, status_reason = ${reason}, status_changed_at = clock_timestamp(),
      revoked_at = CASE WHEN ${isRevoked(to)} THEN coalesce(revoked_at, now()) END
    WHERE id = ${nodeId}
    RETURNING id, org_id, name, status, status_reason, revoked_at`;
  if (!changed) throw new Error("a locked node is missing");
  const ends = isRevoked(to) || event === "enrolled";
  const revoked = ends ? await revokeIdentity(tx, nodeId, options) : [];
  return { from, to, row: changed, revokedSerials: revoked };
}

/** The reason that still applies to the new status when none was provided. */
function reasonAfter(event: NodeEvent, row: StatusRow): string | null {
  return event === "enrolled" ? row.status_reason : null;
}

async function revokeIdentity(
  tx: Tx,
  nodeId: string,
  { keepSerial = null, keepRecoveryTokens = false }: { keepSerial?: string | null; keepRecoveryTokens?: boolean },
): Promise<string[]> {
  const rows = await tx<{ serial: string }[]>`
    WITH tokens AS (
      UPDATE recovery_tokens SET revoked_at = now()
      WHERE node_id = ${nodeId} AND revoked_at IS NULL AND NOT ${keepRecoveryTokens}),
    bundles AS (
      UPDATE recovery_bundles SET revoked_at = now()
      WHERE node_id = ${nodeId} AND revoked_at IS NULL AND used_at IS NULL)
    UPDATE node_certificates SET revoked_at = now()
    WHERE node_id = ${nodeId} AND revoked_at IS NULL AND serial IS DISTINCT FROM ${keepSerial}
    RETURNING serial`;
  return rows.map(({ serial }) => serial);
}
