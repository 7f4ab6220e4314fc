// SQL of explanations. Runs confined to one organization.

import type { Tx } from "../../database/connect.ts";
import { type IncidentRow as CommonRow, selectIncident } from "../incidents/queries.ts";

export type { CommonRow };

export type IncidentRow = {
  id: string;
  reason: string;
  severity: string;
  began_at: Date;
  opened_at: Date;
  closed_at: Date | null;
  detect_seconds: number;
  repair_within: string;
};

const MOST_INCIDENTS = 20;

/** The newest first. */
export async function selectIncidents(tx: Tx, nodeId: string): Promise<IncidentRow[]> {
  return tx<IncidentRow[]>`
    SELECT id, reason, severity, began_at, opened_at, closed_at, detect_seconds, repair_within FROM incidents
    WHERE node_id = ${nodeId} ORDER BY opened_at DESC LIMIT ${MOST_INCIDENTS}`;
}

/** The incident of several nodes that the node's open one is part of. */
export async function selectPartOf(tx: Tx, nodeId: string): Promise<CommonRow | undefined> {
  const [row] = await tx<{ part_of: string }[]>`
    SELECT part_of FROM incidents WHERE node_id = ${nodeId} AND closed_at IS NULL AND part_of IS NOT NULL`;
  return row && selectIncident(tx, row.part_of);
}

/** `now`: by the clock that evidence is stored with. */
export type Subject = { id: string; name: string; now: Date };

export async function selectSubject(tx: Tx, nodeId: string): Promise<Subject | undefined> {
  const [row] = await tx<Subject[]>`
    SELECT id, name, now() AS now FROM nodes WHERE id = ${nodeId}`;
  return row;
}
