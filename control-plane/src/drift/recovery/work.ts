// What their tasks show of nodes at this moment: the last one completed, and whether expired ones are shown as current. Read
// for explanations and for recoveries that are being checked; no cause follows from it.

import type { Tx } from "../../database/connect.ts";
import type { Observation } from "../evidence/observation.ts";

type Row = {
  node_id: string;
  id: string | null;
  finished_at: Date | null;
  reported_by: string | null;
  correlation_id: string | null;
  expired: number;
  now: Date;
};

/** Of a node's tasks, these are looked at. */
const LATEST = 50;

/** By node. */
export async function readWork(tx: Tx, nodeIds: readonly string[]): Promise<Map<string, Observation[]>> {
  if (nodeIds.length === 0) return new Map();
  const rows = await tx<Row[]>`
    SELECT node.id AS node_id, done.id, done.finished_at, done.reported_by, done.correlation_id, now() AS now,
           (SELECT count(*)::int FROM tasks t WHERE t.node_id = node.id AND t.status = 'queued' AND t.expires_at < now())
             AS expired
    FROM unnest(${nodeIds as string[]}::uuid[]) AS node (id) LEFT JOIN LATERAL (
      SELECT id, finished_at, reported_by, correlation_id FROM (
        SELECT id, status, finished_at, reported_by, correlation_id FROM tasks t
        WHERE t.node_id::text = node.id::text ORDER BY t.id DESC LIMIT ${LATEST}) latest
      WHERE status = 'completed' ORDER BY finished_at DESC LIMIT 1) done ON true`;
  return new Map(rows.map((row) => [row.node_id, observationsOf(row)]));
}

function observationsOf({ node_id, now, expired, ...done }: Row): Observation[] {
  const at = now.getTime();
  const queue: Observation = {
    ...{ id: `queue:${node_id}`, kind: "queue", value: expired > 0 ? "expired" : "current" },
    ...{ observer: "control_plane", observedAt: at, receivedAt: at, detail: { expired } },
  };
  if (done.id === null || done.finished_at === null) return [queue];
  const finishedAt = done.finished_at.getTime();
  const task: Observation = {
    ...{ id: `task:${done.id}`, kind: "task", value: "completed", observer: "agent" },
    ...{ observedAt: finishedAt, receivedAt: finishedAt, detail: { instance_id: done.reported_by } },
    correlationId: done.correlation_id ?? undefined,
  };
  return [queue, task];
}
