// SQL of explanations. Runs confined to one organization.

import type { Tx } from "../../database/connect.ts";
import type { Observation } from "../evidence/observation.ts";
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

type Work = {
  id: string | null;
  finished_at: Date | null;
  correlation_id: string | null;
  expired: number;
  now: Date;
};

/** What its tasks show of a node at this moment. Nobody classifies by it, so it is read for explanations only. */
export async function selectWork(tx: Tx, nodeId: string): Promise<Observation[]> {
  const [row] = await tx<Work[]>`
    SELECT done.id, done.finished_at, done.correlation_id, now() AS now,
           (SELECT count(*)::int FROM tasks WHERE node_id = ${nodeId} AND status = 'queued' AND expires_at < now()) AS expired
    FROM (SELECT) one LEFT JOIN LATERAL (
      SELECT id, finished_at, correlation_id FROM (
        SELECT id, status, finished_at, correlation_id FROM tasks WHERE node_id::text = ${nodeId} ORDER BY id DESC LIMIT 50) t
      WHERE status = 'completed' ORDER BY finished_at DESC LIMIT 1) done ON true`;
  if (!row) return [];
  const now = row.now.getTime();
  const queue: Observation = {
    ...{ id: `queue:${nodeId}`, kind: "queue", value: row.expired > 0 ? "expired" : "current" },
    ...{ observer: "control_plane", observedAt: now, receivedAt: now, detail: { expired: row.expired } },
  };
  if (row.id === null || row.finished_at === null) return [queue];
  const at = row.finished_at.getTime();
  const done: Observation = {
    ...{
      id: `task:${row.id}`,
      kind: "task",
      value: "completed",
      observer: "agent",
      observedAt: at,
      receivedAt: at,
    },
    correlationId: row.correlation_id ?? undefined,
  };
  return [queue, done];
}
