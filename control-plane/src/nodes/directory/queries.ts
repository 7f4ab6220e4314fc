// SQL of nodes and enrollment tokens as operators see them. Runs confined to one organization.

import type { EnrollmentTokenKind } from "@holdfast/contracts/endpoints/enrollment";
import type { Heartbeat, NodeStatus } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Tx } from "../../database/connect.ts";
import type { VerdictRow } from "../../drift/verdicts/read.ts";

export type NodeRow = {
  id: string;
  name: string;
  status: NodeStatus;
  status_reason: string | null;
  revoked_at: Date | null;
  created_at: Date;
  address: string | null;
  provider: string | null;
  network_side: string | null;
  heartbeat_at: Date | null;
  instance_id: string | null;
  boot_id: string | null;
  clock_skew_ms: number | null;
  heartbeat: Heartbeat | null;
  /** The stream that it came over; null: the agent polls. */
  stream_id: string | null;
  /** When and how the connection of that heartbeat ended. */
  disconnected_at: Date | null;
  disconnected_why: string | null;
  /** When this was read, by the same clock as `heartbeat_at`. */
  read_at: Date;
  /** The certificate last issued, and the one that the last heartbeat came with. */
  issued: CertificateFacts | null;
  in_use: CertificateFacts | null;
  recovery_token: { seq: number; issued_at: string; expires_at: string } | null;
};
/** With the verdict that the worker stored last. */
export type ListedRow = NodeRow & VerdictRow;
/** Times are JSON strings. */
export type CertificateFacts = {
  serial: string;
  not_before: string;
  not_after: string;
  issued_at: string;
  revoked_at: string | null;
};

const columns = (tx: Tx) => tx`
  n.id, n.name, n.status, n.status_reason, n.revoked_at, n.created_at,
  n.address, n.provider, n.network_side,
  p.heartbeat_at, p.instance_id, p.boot_id, p.clock_skew_ms, p.heartbeat,
  p.stream_id, p.disconnected_at, p.disconnected_why, now() AS read_at,
  (SELECT to_json(c) FROM (
     SELECT serial, not_before, not_after, issued_at, revoked_at FROM node_certificates
     WHERE node_id = n.id ORDER BY not_after DESC, issued_at DESC LIMIT 1) c) AS issued,
  (SELECT to_json(c) FROM (
     SELECT serial, not_before, not_after, issued_at, revoked_at FROM node_certificates
     WHERE node_id = n.id AND serial = p.heartbeat->'certificate'->>'serial') c) AS in_use,
  (SELECT to_json(t) FROM (
     SELECT seq, issued_at, expires_at FROM recovery_tokens
     WHERE node_id = n.id AND held_at IS NOT NULL AND revoked_at IS NULL AND expires_at > now()
     ORDER BY seq DESC LIMIT 1) t) AS recovery_token`;

const verdictColumns = (tx: Tx) => tx`
  v.causes, v.user_state, v.reporting, v.management, v.workload, v.access`;
const listed = (tx: Tx) => tx`
  SELECT ${columns(tx)}, ${verdictColumns(tx)} FROM nodes n LEFT JOIN node_presence p ON p.node_id = n.id
  LEFT JOIN node_verdicts v ON v.node_id = n.id AND v.classified_at > '-infinity'`;

/** Filters on columns alone, which are up to date immediately after a change. */
export type ColumnFilter = {
  name?: string | undefined;
  status?: NodeStatus | undefined;
  state?: "present" | "retired" | undefined;
  /** A part of the name, or the beginning of the id. */
  search?: string | undefined;
};

export async function selectNodes(
  tx: Tx,
  filter: ColumnFilter,
  page: { before: string; limit: number },
): Promise<{ rows: ListedRow[]; total: number }> {
  const [rows, [counted]] = await Promise.all([
    tx<ListedRow[]>`
      ${listed(tx)} WHERE n.id < ${page.before} AND ${passes(tx, filter)} ORDER BY n.id DESC LIMIT ${page.limit + 1}`,
    tx<{ total: number }[]>`SELECT count(*)::int AS total FROM nodes n WHERE ${passes(tx, filter)}`,
  ]);
  return { rows, total: counted?.total ?? 0 };
}

function passes(tx: Tx, { state, ...filter }: ColumnFilter) {
  const name = filter.name ?? null;
  const status = filter.status ?? null;
  const text = filter.search?.toLowerCase() ?? null;
  return tx`
    (${name}::text IS NULL OR n.name = ${name}) AND (${status}::text IS NULL OR n.status = ${status})
    AND ${state === undefined ? tx`true` : state === "retired" ? tx`n.status = 'retired'` : tx`n.status <> 'retired'`}
    AND (${text}::text IS NULL OR strpos(n.name, ${text}) > 0 OR starts_with(n.id::text, ${text}))`;
}

/** In the order of the ids given. */
export async function selectNodesById(tx: Tx, ids: readonly string[]): Promise<ListedRow[]> {
  const rows = await tx<ListedRow[]>`${listed(tx)} WHERE n.id = ANY(${ids as string[]}::uuid[])`;
  const places = new Map(ids.map((id, place) => [id, place]));
  return rows.sort((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0));
}

export async function selectNode(tx: Tx, id: string): Promise<NodeRow | undefined> {
  const [row] = await tx<NodeRow[]>`
    SELECT ${columns(tx)} FROM nodes n LEFT JOIN node_presence p ON p.node_id = n.id WHERE n.id = ${id}`;
  return row;
}

export type NodeUpdate = {
  name?: string | undefined;
  /** Null: as the agent reports it. */
  provider?: string | null | undefined;
  network_side?: string | null | undefined;
};

/** Undefined fields stay as they are. */
export async function updateNodeRow(
  tx: Tx,
  id: string,
  { name, provider, network_side }: NodeUpdate,
): Promise<void> {
  const reported = (field: string) => tx`
    (SELECT p.heartbeat#>>${["setup", field]}::text[] FROM node_presence p WHERE p.node_id = n.id)`;
  if (name !== undefined) await tx`UPDATE nodes SET name = ${name} WHERE id = ${id}`;
  if (provider !== undefined) {
    await tx`
      UPDATE nodes n SET provider = coalesce(${provider}::text, ${reported("provider")}),
        provider_by_operator = ${provider !== null} WHERE id = ${id}`;
  }
  if (network_side !== undefined) {
    await tx`
      UPDATE nodes n SET network_side = coalesce(${network_side}::text, ${reported("network_side")}),
        network_side_by_operator = ${network_side !== null} WHERE id = ${id}`;
  }
}

/** The node that a token is created for, locked until the transaction ends. */
export async function holdNode(
  tx: Tx,
  node: { id: string } | { name: string },
): Promise<Pick<NodeRow, "id" | "name" | "status" | "revoked_at"> | undefined> {
  const [row] = await tx<NodeRow[]>`
    SELECT id, name, status, revoked_at FROM nodes
    WHERE ${"id" in node ? tx`id = ${node.id}` : tx`name = ${node.name} AND status <> 'retired'`} FOR SHARE`;
  return row;
}

export type TokenRow = {
  id: string;
  kind: EnrollmentTokenKind;
  node_id: string | null;
  /** The current name of its node, otherwise the name requested. */
  node_name: string | null;
  creator_name: string;
  created_at: Date;
  expires_at: Date;
  used_at: Date | null;
  uses: number;
  revoked_at: Date | null;
  enrolled_node_id: string | null;
};

const selectTokens = (tx: Tx) => tx`
  SELECT t.id, t.kind, t.node_id, coalesce(n.name, t.node_name) AS node_name, t.creator_name, t.created_at,
         t.expires_at, t.used_at, t.uses, t.revoked_at, t.enrolled_node_id
  FROM enrollment_tokens t LEFT JOIN nodes n ON n.id = t.node_id`;

export async function insertEnrollmentToken(
  tx: Tx,
  token: {
    orgId: string;
    kind: EnrollmentTokenKind;
    hash: Buffer;
    nodeId: string | null;
    nodeName: string | null;
    createdBy: string | null;
    creatorName: string;
    parentId: string | null;
    expiresInMinutes: number;
  },
): Promise<TokenRow> {
  const id = uuidv7();
  await tx`
    INSERT INTO enrollment_tokens (id, org_id, kind, secret_hash, node_id, node_name, created_by, creator_name,
                                   parent_id, expires_at)
    VALUES (${id}, ${token.orgId}, ${token.kind}, ${token.hash}, ${token.nodeId}, ${token.nodeName},
            ${token.createdBy}, ${token.creatorName}, ${token.parentId},
            now() + ${token.expiresInMinutes}::int * interval '1 minute')`;
  const row = await selectEnrollmentToken(tx, id);
  if (!row) throw new Error("a token is missing in its own transaction");
  return row;
}

export async function selectEnrollmentTokens(
  tx: Tx,
  page: { before: string; limit: number },
): Promise<TokenRow[]> {
  return tx<TokenRow[]>`
    ${selectTokens(tx)} WHERE t.id < ${page.before} ORDER BY t.id DESC LIMIT ${page.limit + 1}`;
}

export async function selectEnrollmentToken(tx: Tx, id: string): Promise<TokenRow | undefined> {
  const [row] = await tx<TokenRow[]>`${selectTokens(tx)} WHERE t.id = ${id}`;
  return row;
}

/** Revoking twice keeps the first time; a pairing token that was used stays used. */
export async function markTokenRevoked(tx: Tx, id: string): Promise<void> {
  await tx`UPDATE enrollment_tokens SET revoked_at = now() WHERE id = ${id} AND ${stillWorks(tx)}`;
}

/** Those of this node that could still be used. */
export async function revokeTokensFor(tx: Tx, nodeId: string): Promise<void> {
  await tx`UPDATE enrollment_tokens SET revoked_at = now() WHERE node_id = ${nodeId} AND ${stillWorks(tx)}`;
}

const stillWorks = (tx: Tx) => tx`revoked_at IS NULL AND (used_at IS NULL OR kind = 'bootstrap')`;
