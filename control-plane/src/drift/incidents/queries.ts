// SQL of incidents. Runs confined to one organization.

import type { SharedAttribute } from "@holdfast/contracts/endpoints/incidents";
import type { FileObservation } from "@holdfast/contracts/public/evidence-file";
import type { OwnerId } from "@holdfast/contracts/reasons/owners";
import type { NextAction, Severity, UserState } from "@holdfast/contracts/reasons/vocabulary";
import type { Tx } from "../../database/connect.ts";
import type { StoredCause } from "../verdicts/stored.ts";

export type IncidentRow = {
  id: string;
  /** Null: of several nodes. */
  node_id: string | null;
  node_name: string | null;
  part_of: string | null;
  attribute: SharedAttribute | null;
  value: string | null;
  /** Of one node: 1. */
  nodes: number;
  reason: string;
  signal: string | null;
  severity: Severity;
  owner: OwnerId;
  next_action: NextAction;
  user_state: UserState;
  began_at: Date;
  opened_at: Date;
  closed_at: Date | null;
  outage_began_at: Date | null;
  outage_ended_at: Date | null;
  detect_seconds: number;
  repair_within: string;
  episodes: string[];
};

export type IncidentFilter = {
  nodeId?: string | undefined;
  state?: "open" | "closed" | undefined;
  partOf?: string | undefined;
  episode?: string | undefined;
};

export async function selectIncidentPage(
  tx: Tx,
  page: IncidentFilter & { before: string; limit: number },
): Promise<IncidentRow[]> {
  const { nodeId, state, partOf, episode } = page;
  const none = tx``;
  return tx<IncidentRow[]>`
    ${selected(tx)} WHERE i.id < ${page.before}
      ${nodeId === undefined ? none : tx`AND i.node_id = ${nodeId}`}
      ${state === undefined ? none : state === "open" ? tx`AND i.closed_at IS NULL` : tx`AND i.closed_at IS NOT NULL`}
      ${partOf === undefined ? none : tx`AND i.part_of = ${partOf}`}
      ${episode === undefined ? none : tx`AND i.episodes @> ARRAY[${episode}::text]`}
    ORDER BY i.id DESC LIMIT ${page.limit + 1}`;
}

export async function selectIncident(tx: Tx, id: string): Promise<IncidentRow | undefined> {
  const [row] = await tx<IncidentRow[]>`${selected(tx)} WHERE i.id = ${id}`;
  return row;
}

const selected = (tx: Tx) => tx`
  SELECT i.id, i.node_id, n.name AS node_name, i.part_of, i.attribute, i.value, i.reason, i.signal, i.severity, i.owner,
         i.next_action, i.user_state, i.began_at, i.opened_at, i.closed_at, i.outage_began_at, i.outage_ended_at,
         i.detect_seconds, i.repair_within, i.episodes,
         -- Those that are affected at present; of one that is over, all that were.
         CASE WHEN i.node_id IS NULL THEN (
           SELECT count(*)::int FROM incidents m
           WHERE m.part_of = i.id AND (m.closed_at IS NULL OR i.closed_at IS NOT NULL)) ELSE 1 END AS nodes
  FROM incidents i LEFT JOIN nodes n ON n.id = i.node_id`;

export type MemberRow = { id: string; name: string; incident_id: string; state: "open" | "closed" };

export async function selectMembers(tx: Tx, id: string, most: number): Promise<MemberRow[]> {
  return tx<MemberRow[]>`
    SELECT n.id, n.name, i.id AS incident_id, CASE WHEN i.closed_at IS NULL THEN 'open' ELSE 'closed' END AS state
    FROM incidents i JOIN nodes n ON n.id = i.node_id WHERE i.part_of = ${id}
    ORDER BY i.closed_at IS NOT NULL, n.name, i.id LIMIT ${most}`;
}

export type VerdictRow = { at: Date; causes: StoredCause[]; evidence: FileObservation[] };

export async function selectVerdicts(tx: Tx, id: string): Promise<VerdictRow[]> {
  return tx<VerdictRow[]>`
    SELECT at, causes, evidence FROM incident_verdicts WHERE incident_id = ${id} ORDER BY at`;
}
