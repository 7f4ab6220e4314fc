// Recovery tokens as rows: issued with heartbeats, shown by the node, revoked with its identity. Only hashes are stored.

import type { RecoveryToken } from "@holdfast/contracts/node/recovery";
import type { Queryable, Tx } from "../database/connect.ts";
import { makeSecret } from "../mechanisms/secrets.ts";

/** `shown`: the newest one that the node says it has. A restored database may know less than the node. */
export type Recipient = { nodeId: string; orgId: string; shown: number };

type IssuedRow = { node_id: string; seq: string; issued_at: Date; expires_at: Date };

/**
 * One for each node that may still have an identity, by its id. Earlier ones keep working until the node shows this one: its response
 * may be lost. A node that gets one from another replica at the same moment gets none here.
 */
export async function issueTokens(
  db: Queryable,
  recipients: readonly Recipient[],
  { profile, maxAgeSeconds }: { profile: string; maxAgeSeconds: number },
): Promise<Map<string, RecoveryToken>> {
  // In the order of the ids, so that no two replicas wait for each other.
  const sorted = recipients.toSorted((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
  const secrets = new Map(sorted.map(({ nodeId }) => [nodeId, makeSecret("recovery")]));
  const rows = await db<IssuedRow[]>`
    WITH issued AS (
      INSERT INTO recovery_tokens (node_id, seq, org_id, profile, secret_hash, issued_at, expires_at)
      SELECT r.node_id, 1 + greatest(r.shown,
               coalesce((SELECT max(seq) FROM recovery_tokens t WHERE t.node_id = r.node_id), 0)),
             r.org_id, ${profile}, r.hash, now(), now() + ${`${maxAgeSeconds} seconds`}::interval
      FROM unnest(${sorted.map(({ nodeId }) => nodeId)}::uuid[], ${sorted.map(({ orgId }) => orgId)}::uuid[],
        ${sorted.map(({ shown }) => shown)}::bigint[],
        ${sorted.map(({ nodeId }) => `\\x${secrets.get(nodeId)?.hash.toString("hex")}`)}::text[]::bytea[])
        AS r (node_id, org_id, shown, hash)
      JOIN nodes n ON n.id = r.node_id AND n.revoked_at IS NULL AND n.status <> 'quarantined'
      ON CONFLICT DO NOTHING
      RETURNING node_id, org_id, seq, issued_at, expires_at),
    counted AS (
      INSERT INTO recovery_token_days AS d (node_id, org_id, day, issued)
      SELECT node_id, org_id, current_date, 1 FROM issued
      ON CONFLICT (node_id, day) DO UPDATE SET issued = d.issued + 1)
    SELECT node_id, seq, issued_at, expires_at FROM issued`;
  return new Map(
    rows.map(({ node_id, seq, issued_at, expires_at }) => [
      node_id,
      {
        token: secrets.get(node_id)?.secret ?? "",
        ...{ seq: Number(seq), profile },
        ...{ issued_at: issued_at.toISOString(), expires_at: expires_at.toISOString() },
      },
    ]),
  );
}

export type Shown = { nodeId: string; seq: number };

/** Ends all earlier ones. Returns the ids of nodes whose token is known and works; others need a new one. */
export async function markShown(db: Queryable, all: readonly Shown[]): Promise<Set<string>> {
  const sorted = all.toSorted((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
  const rows = await db<{ node_id: string }[]>`
    UPDATE recovery_tokens t SET held_at = coalesce(t.held_at, now())
    FROM unnest(${sorted.map(({ nodeId }) => nodeId)}::uuid[], ${sorted.map(({ seq }) => seq)}::bigint[])
      AS shown (node_id, seq)
    WHERE t.node_id = shown.node_id AND t.seq = shown.seq AND t.revoked_at IS NULL AND t.expires_at > now()
    RETURNING t.node_id`;
  return new Set(rows.map(({ node_id }) => node_id));
}

/** With the node's identity, or by an operator. Returns how many still worked. */
export async function revokeRecoveryTokensOf(tx: Tx, nodeId: string): Promise<number> {
  const revoked = await tx`
    UPDATE recovery_tokens SET revoked_at = now()
    WHERE node_id = ${nodeId} AND revoked_at IS NULL AND expires_at > now()`;
  return revoked.count;
}
