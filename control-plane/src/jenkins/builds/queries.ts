// SQL of builds that reads, and removes what ended long ago. What changes a build is in transitions/.

import type { JenkinsBuild, JenkinsBuildState } from "@holdfast/contracts/endpoints/jenkins";
import type { LeaseState } from "@holdfast/contracts/endpoints/leases";
import type { TaskFailure } from "@holdfast/contracts/node/protocol";
import type { Queryable, Sql, Tx } from "../../database/connect.ts";
import { firstIdAt } from "../../tasks/remove-old.ts";
import type { KnownBuild } from "./decide-claims.ts";

export type BuildRow = {
  id: string;
  org_id: string;
  controller_id: string;
  queue_id: number;
  attempt: number;
  task: string;
  label_expression: string;
  node_labels: string[];
  lease_label: string;
  status: JenkinsBuildState;
  lease_id: string;
  node_name: string;
  leased: boolean;
  build_url: string | null;
  reason: TaskFailure | null;
  created_at: Date;
  connected_at: Date | null;
  building_at: Date | null;
  lost_at: Date | null;
  left_at: Date | null;
  finished_at: Date | null;
  /** Null: there is no lease. */
  lease_status: LeaseState | null;
  lease_started_at: Date | null;
  grace_seconds: number | null;
};

const columns = (db: Queryable) => db`
  b.id, b.org_id, b.controller_id, b.queue_id::float8 AS queue_id, b.attempt, b.task, b.label_expression, b.node_labels,
  b.lease_label, b.status, b.lease_id, b.node_name, b.leased, b.build_url, b.reason, b.created_at, b.connected_at, b.building_at,
  b.lost_at, b.left_at, b.finished_at, l.status AS lease_status, coalesce(l.booted_at, l.placed_at) AS lease_started_at,
  l.grace_seconds`;

/** Those that have not ended, the oldest first. */
export async function selectOpenBuilds(db: Queryable, controllerId: string): Promise<BuildRow[]> {
  return db<BuildRow[]>`
    SELECT ${columns(db)} FROM jenkins_builds b LEFT JOIN vm_leases l ON l.id = b.lease_id
    WHERE b.controller_id = ${controllerId} AND b.finished_at IS NULL ORDER BY b.id`;
}

const MOST_RECENT = 50;

/** Those that have not ended first, then the newest. */
export async function selectRecentBuilds(tx: Tx, controllerId: string): Promise<BuildRow[]> {
  return tx<BuildRow[]>`
    SELECT ${columns(tx)} FROM jenkins_builds b LEFT JOIN vm_leases l ON l.id = b.lease_id
    WHERE b.controller_id = ${controllerId} AND (b.finished_at IS NULL OR b.id IN (
      SELECT o.id FROM jenkins_builds o WHERE o.controller_id = ${controllerId} ORDER BY o.id DESC LIMIT ${MOST_RECENT}))
    ORDER BY b.finished_at IS NOT NULL, b.id DESC`;
}

/** All that decide about new ones: open, begun lately, or of an item that is still queued. */
export async function selectKnownBuilds(
  db: Queryable,
  controllerId: string,
  { queueIds, sinceSeconds }: { queueIds: readonly number[]; sinceSeconds: number },
): Promise<KnownBuild[]> {
  const rows = await db<{ queue_id: number; created_at: Date; finished_at: Date | null }[]>`
    SELECT queue_id::float8 AS queue_id, created_at, finished_at FROM jenkins_builds
    WHERE controller_id = ${controllerId} AND (finished_at IS NULL
      OR created_at > now() - ${sinceSeconds} * interval '1 second' OR queue_id = ANY (${[...queueIds]}::bigint[]))`;
  return rows.map((row) => ({
    queueId: row.queue_id,
    createdAt: row.created_at.getTime(),
    finishedAt: row.finished_at?.getTime(),
  }));
}

const time = (at: Date | null) => at?.toISOString() ?? null;

export function presentBuild(row: BuildRow): JenkinsBuild {
  return {
    ...{ id: row.id, status: row.status, queue_id: row.queue_id, attempt: row.attempt, task: row.task },
    ...{ label: row.label_expression, node_name: row.node_name, lease_label: row.lease_label },
    ...{ lease_id: row.lease_status === null ? null : row.lease_id, lease_status: row.lease_status },
    ...{ build_url: row.build_url, reason: row.reason, created_at: row.created_at.toISOString() },
    ...{
      connected_at: time(row.connected_at),
      building_at: time(row.building_at),
      finished_at: time(row.finished_at),
    },
  };
}

const BATCH = 500;

/** Ids are ordered by time, as of tasks. */
export async function removeOldBuilds(
  system: Sql,
  { days, now = new Date() }: { days: number; now?: Date },
): Promise<number> {
  const before = new Date(now.getTime() - days * 86_400_000);
  let removed = 0;
  for (;;) {
    const { count } = await system`
      DELETE FROM jenkins_builds WHERE id IN (
        SELECT id FROM jenkins_builds WHERE id < ${firstIdAt(before)} AND finished_at < ${before}
        ORDER BY id LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)`;
    removed += count;
    if (count < BATCH) return removed;
  }
}
