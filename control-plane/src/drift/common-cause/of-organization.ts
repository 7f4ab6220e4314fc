// The open common causes of one organization, with its own nodes: what the fleet's pages show. Runs confined to it.

import type { SharedAttribute } from "@holdfast/contracts/endpoints/incidents";
import type { Tx } from "../../database/connect.ts";

export type OrgIncident = {
  id: string;
  reason: string;
  attribute: SharedAttribute;
  value: string;
  began_at: Date;
  outage_began_at: Date | null;
  outage_ended_at: Date | null;
  /** Those that are affected at present. */
  node_ids: ReadonlySet<string>;
};

/** By indexes: without a common cause, one row of an index is read. */
export async function selectOpenCommonCauses(tx: Tx): Promise<OrgIncident[]> {
  const rows = await tx<(Omit<OrgIncident, "node_ids"> & { node_ids: string[] })[]>`
    SELECT i.id, i.reason, i.attribute, coalesce(i.value, '') AS value, i.began_at, i.outage_began_at, i.outage_ended_at,
           ARRAY(SELECT m.node_id FROM incidents m WHERE m.part_of = i.id AND m.closed_at IS NULL) AS node_ids
    FROM incidents i WHERE i.node_id IS NULL AND i.closed_at IS NULL ORDER BY i.id`;
  return rows.map((row) => ({ ...row, node_ids: new Set(row.node_ids) }));
}

/** Changes whenever something does that a page shows of them. */
export function digestOf(incidents: readonly OrgIncident[]): string {
  return JSON.stringify(
    incidents.map(({ node_ids, ...incident }) => ({ ...incident, nodes: [...node_ids].sort() })),
  );
}
