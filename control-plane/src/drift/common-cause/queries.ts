// SQL of common causes. Runs as the system: a cause does not end at the border of an organization.

import type { OwnerId } from "@holdfast/contracts/reasons/owners";
import type { NextAction, Severity, UserState } from "@holdfast/contracts/reasons/vocabulary";
import type { Tx } from "../../database/connect.ts";
import { type AttributeRow, attributeColumns } from "./attributes.ts";

/** Whether there is anything to compare. By an index and a small table: at rest this is all that is done. */
export async function isDue(tx: Tx): Promise<boolean> {
  const [row] = await tx<{ due: boolean }[]>`
    SELECT EXISTS (SELECT FROM incidents WHERE NOT compared) OR EXISTS (
      -- What rests on an outage ends with time alone.
      SELECT FROM platform_incidents WHERE closed_at IS NULL AND outage_began_at IS NOT NULL) AS due`;
  return row?.due === true;
}

/** Two workers do not compare at the same time. Nobody else writes to this table, and reading it is not held up. */
export async function lockCommonCauses(tx: Tx): Promise<void> {
  await tx`LOCK TABLE platform_incidents IN SHARE ROW EXCLUSIVE MODE`;
}

export type OpenRow = {
  id: string;
  reason: string;
  attribute: string;
  value: string;
  began_at: Date;
  outage_began_at: Date | null;
  outage_ended_at: Date | null;
};

export async function selectOpen(tx: Tx): Promise<OpenRow[]> {
  return tx<OpenRow[]>`
    SELECT id, reason, attribute, value, began_at, outage_began_at, outage_ended_at FROM platform_incidents
    WHERE closed_at IS NULL`;
}

export async function selectUncompared(tx: Tx): Promise<string[]> {
  const rows = await tx<{ id: string }[]>`SELECT id FROM incidents WHERE NOT compared`;
  return rows.map(({ id }) => id);
}

export type FleetRow = AttributeRow & {
  id: string;
  org_id: string;
  incident_id: string | null;
  reason: string | null;
  reason_since: Date | null;
  compared: boolean | null;
  part_of: string | null;
  signal: string | null;
  severity: Severity | null;
  owner: OwnerId | null;
  next_action: NextAction | null;
  user_state: UserState | null;
  detect_seconds: number | null;
  repair_within: string | null;
};

/** All nodes that are expected to report, with the open incident of each. Reads the tables from end to end. */
export async function selectNodes(tx: Tx): Promise<FleetRow[]> {
  return tx<FleetRow[]>`
    SELECT n.id, n.org_id, i.id AS incident_id, i.reason, i.reason_since, i.compared, i.part_of, i.signal, i.severity,
           i.owner, i.next_action, i.user_state, i.detect_seconds, i.repair_within,
           p.attributes AS reported, ${attributeColumns}
    FROM nodes n JOIN node_presence p ON p.node_id = n.id
    LEFT JOIN incidents i ON i.node_id = n.id AND i.closed_at IS NULL
    LEFT JOIN LATERAL (
      SELECT issuer FROM node_certificates
      WHERE node_id = n.id AND revoked_at IS NULL ORDER BY not_after DESC LIMIT 1) c ON true
    WHERE n.status IN ('active', 'draining') AND n.revoked_at IS NULL`;
}

type OutageRow = { began_at: Date; ended_at: Date | null };

/** Those of the api: without it, no node can report. */
export async function selectOutages(tx: Tx, withinMs: number): Promise<OutageRow[]> {
  return tx<OutageRow[]>`
    SELECT began_at, ended_at FROM control_plane_outages
    WHERE kind = 'api' AND (ended_at IS NULL OR ended_at > now() - ${`${withinMs} milliseconds`}::interval)`;
}
