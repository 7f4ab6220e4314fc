// Recovery bundles as rows.

import type { bundleStates } from "@holdfast/contracts/endpoints/bundles";
import type { Tx } from "../database/connect.ts";

export type BundleRow = {
  id: string;
  node_id: string;
  node_name: string;
  seq: number;
  state: (typeof bundleStates)[number];
  creator_name: string;
  created_at: Date;
  expires_at: Date;
  used_at: Date | null;
  applied_at: Date | null;
  revoked_at: Date | null;
  correlation_id: string;
};

const selectRows = (tx: Tx) => tx`
  SELECT b.id, b.node_id, n.name AS node_name, b.seq, b.creator_name, b.created_at, b.expires_at, b.used_at, b.applied_at,
         b.revoked_at, b.correlation_id,
         CASE WHEN b.used_at IS NOT NULL THEN 'used' WHEN b.revoked_at IS NOT NULL THEN 'revoked'
              WHEN b.expires_at <= now() THEN 'expired' ELSE 'created' END AS state
  FROM recovery_bundles b JOIN nodes n ON n.id = b.node_id`;

export async function selectBundles(tx: Tx, page: { before: string; limit: number }): Promise<BundleRow[]> {
  return tx<BundleRow[]>`
    ${selectRows(tx)} WHERE b.id < ${page.before} ORDER BY b.id DESC LIMIT ${page.limit + 1}`;
}

export async function selectBundle(tx: Tx, id: string): Promise<BundleRow | undefined> {
  const [row] = await tx<BundleRow[]>`${selectRows(tx)} WHERE b.id = ${id}`;
  return row;
}

export type NewBundle = {
  id: string;
  orgId: string;
  nodeId: string;
  hash: Buffer;
  correlationId: string;
  createdBy: string | null;
  creatorName: string;
  parentId: string | null;
  expiresInMinutes: number;
};

/** The node is locked, so that no two get the same number. */
export async function insertBundle(tx: Tx, bundle: NewBundle): Promise<BundleRow> {
  await tx`
    INSERT INTO recovery_bundles (id, org_id, node_id, seq, secret_hash, correlation_id, created_by, creator_name, parent_id,
                                  expires_at)
    SELECT ${bundle.id}, ${bundle.orgId}, ${bundle.nodeId}, 1 + coalesce(max(b.seq), 0), ${bundle.hash},
           ${bundle.correlationId}, ${bundle.createdBy}, ${bundle.creatorName}, ${bundle.parentId},
           now() + ${bundle.expiresInMinutes}::int * interval '1 minute'
    FROM recovery_bundles b WHERE b.node_id = ${bundle.nodeId}`;
  const row = await selectBundle(tx, bundle.id);
  if (!row) throw new Error("a bundle is missing in its own transaction");
  return row;
}

/** Revoking twice keeps the first time; a bundle that was used stays used. */
export async function markBundleRevoked(tx: Tx, id: string): Promise<void> {
  await tx`UPDATE recovery_bundles SET revoked_at = now() WHERE id = ${id} AND revoked_at IS NULL AND used_at IS NULL`;
}

/** What the node reported last, if anything. */
export type KnownState = {
  incident_id: string | null;
  hostname: string | null;
  profile_name: string | null;
  profile_version: number | null;
  key_set: number | null;
  trust_bundle: number | null;
};

export async function selectKnownState(tx: Tx, nodeId: string): Promise<KnownState | undefined> {
  const [row] = await tx<KnownState[]>`
    SELECT v.incident_id, p.heartbeat -> 'facts' ->> 'hostname' AS hostname,
           p.heartbeat -> 'profile' ->> 'name' AS profile_name,
           (p.heartbeat -> 'profile' ->> 'version')::integer AS profile_version,
           (p.heartbeat -> 'trust' ->> 'key_set')::float8 AS key_set,
           (p.heartbeat -> 'trust' ->> 'bundle')::float8 AS trust_bundle
    FROM nodes n LEFT JOIN node_presence p ON p.node_id = n.id LEFT JOIN node_verdicts v ON v.node_id = n.id
    WHERE n.id = ${nodeId}`;
  return row;
}

export type WithoutToken = { id: string; name: string; heartbeat_at: Date | null };

/** Those that may still get an identity, and have no token that works: not expired, not revoked, and none newer shown. */
export async function selectWithoutToken(
  tx: Tx,
  page: { before: string; limit: number },
): Promise<WithoutToken[]> {
  return tx<WithoutToken[]>`
    SELECT n.id, n.name, p.heartbeat_at FROM nodes n LEFT JOIN node_presence p ON p.node_id = n.id
    WHERE n.id < ${page.before} AND n.revoked_at IS NULL AND n.status IN ('enrolling', 'active', 'draining')
      AND NOT EXISTS (
        SELECT FROM recovery_tokens t
        WHERE t.node_id = n.id AND t.revoked_at IS NULL AND t.expires_at > now() AND t.used_at IS NULL
          AND NOT EXISTS (SELECT FROM recovery_tokens newer
            WHERE newer.node_id = t.node_id AND newer.seq > t.seq AND newer.held_at IS NOT NULL))
    ORDER BY n.id DESC LIMIT ${page.limit + 1}`;
}
