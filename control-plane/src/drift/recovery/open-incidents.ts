// The open incidents of nodes, as far as the end of a recovery depends on them.

import type { Queryable } from "../../database/connect.ts";
import type { OpenIncident, PastCause } from "./gate.ts";

type Row = { node_id: string; proof_after: Date | null; opened_at: Date; causes: PastCause[] };

/** By node; those without one are left out. */
export async function readOpenIncidents(
  db: Queryable,
  nodeIds: readonly string[],
): Promise<Map<string, OpenIncident>> {
  const rows = await db<Row[]>`
    SELECT v.node_id, v.causes, i.proof_after, i.opened_at FROM node_verdicts v JOIN incidents i ON i.id = v.incident_id
    WHERE v.node_id = ANY(${nodeIds as string[]}::uuid[])`;
  return new Map(rows.map((row) => [row.node_id, toOpen(row)]));
}

const toOpen = ({ causes, proof_after, opened_at }: Row): OpenIncident => ({
  ...{ causes, proofAfter: proof_after?.getTime() ?? null, openedAt: opened_at.getTime() },
});
