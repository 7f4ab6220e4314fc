// Reviews the heartbeats that do not continue the one before: the presence statement keeps them in their order, whichever
// replica received them, and whoever comes next reviews all of them. Nothing of it runs while one agent sends heartbeats.

import type { Sql, Tx } from "../../database/connect.ts";
import {
  addContact,
  afterProof,
  type Contact,
  type Holder,
  isKnown,
  type Lineage,
  noLineage,
  provedHolders,
  shouldConfirm,
} from "./lineage.ts";

/** Two that ran at the same time with the identity of one node. */
export type Clone = { nodeId: string; orgId: string; holders: [Holder, Holder] };
export type Review = {
  /** The number of a heartbeat whose sender should send another one now. */
  confirm: number | undefined;
  /** Whoever else may use the identity should send one now. */
  askOthers: boolean;
  clone: Clone | undefined;
};

type Row = { node_id: string; org_id: string; unreviewed: Contact[] };
type Reviewed = Row & { lineage: Lineage; review: Review };

/** By node. Locks the presence of these nodes, in the order of their ids. */
export function reviewHolders(system: Sql, nodeIds: readonly string[]): Promise<Map<string, Review>> {
  return system.begin(
    async (tx) => {
      const rows = await tx<Row[]>`
        SELECT node_id, org_id, unreviewed FROM node_presence
        WHERE node_id = ANY(${nodeIds as string[]}::uuid[]) AND unreviewed IS NOT NULL ORDER BY node_id FOR UPDATE`;
      // Only now: whoever had the locks before may have written it.
      const known = await selectLineages(
        tx,
        rows.map(({ node_id }) => node_id),
      );
      const reviewed = rows.map((row) => review(row, known.get(row.node_id) ?? noLineage));
      await store(tx, reviewed);
      return new Map(reviewed.map((one) => [one.node_id, one.review]));
    },
    { settings: { synchronous_commit: "off" } },
  );
}

export async function selectLineages(tx: Tx, nodeIds: readonly string[]): Promise<Map<string, Lineage>> {
  if (nodeIds.length === 0) return new Map();
  const rows = await tx<{ node_id: string; lineage: Lineage }[]>`
    SELECT node_id, lineage FROM node_holders WHERE node_id = ANY(${nodeIds as string[]}::uuid[])`;
  return new Map(rows.map(({ node_id, lineage }) => [node_id, lineage]));
}

function review(row: Row, before: Lineage): Reviewed {
  const { node_id: nodeId, org_id: orgId } = row;
  let lineage = before;
  let clone: Clone | undefined;
  for (const contact of row.unreviewed) {
    lineage = addContact(lineage, contact);
    const holders = provedHolders(lineage);
    if (!holders) continue;
    clone = { nodeId, orgId, holders };
    lineage = afterProof(lineage, holders, contact.at);
  }
  const confirm = shouldConfirm(lineage) ? lineage.reviewed : undefined;
  const askOthers = confirm !== undefined && !isKnown(lineage);
  return { ...row, lineage, review: { confirm, askOthers, clone } };
}

async function store(tx: Tx, reviewed: readonly Reviewed[]): Promise<void> {
  if (reviewed.length === 0) return;
  const ids = reviewed.map(({ node_id }) => node_id);
  await tx`
    INSERT INTO node_holders AS h (node_id, org_id, lineage, proved_at)
    SELECT node_id, org_id, lineage::jsonb, CASE WHEN proved THEN now() END
    FROM unnest(${ids}::uuid[], ${reviewed.map(({ org_id }) => org_id)}::uuid[],
      ${reviewed.map(({ lineage }) => JSON.stringify(lineage))}::text[],
      ${reviewed.map(({ review: { clone } }) => clone !== undefined)}::boolean[]) AS r (node_id, org_id, lineage, proved)
    ON CONFLICT (node_id) DO UPDATE SET lineage = excluded.lineage,
      proved_at = coalesce(excluded.proved_at, h.proved_at)`;
  await tx`UPDATE node_presence SET unreviewed = NULL WHERE node_id = ANY(${ids}::uuid[])`;
}
