// The newest runs of several workflows, in one query.

import { listRecentRuns, type RecentRun } from "@holdfast/contracts/endpoints/recent-runs";
import type { ApiContext } from "../../api/context.ts";
import { orgRoute } from "../../api/route.ts";
import type { Tx } from "../../database/connect.ts";

type Row = {
  workflow_id: string;
  id: string;
  status: RecentRun["status"];
  created_at: Date;
  started_at: Date | null;
  finished_at: Date | null;
};

export function recentRunRoutes(api: ApiContext): void {
  orgRoute(api, listRecentRuns, async ({ tx, query }) => {
    const rows = await selectRecentRuns(tx, query.workflow_ids.split(","), query.each);
    const byWorkflow = Map.groupBy(rows, (row) => row.workflow_id);
    return { items: [...byWorkflow].map(([workflow_id, own]) => ({ workflow_id, runs: own.map(toRecentRun) })) };
  });
}

/** Row-level security leaves out the workflows of other organizations. */
function selectRecentRuns(tx: Tx, workflowIds: string[], each: number): Promise<Row[]> {
  return tx<Row[]>`
    SELECT r.workflow_id, r.id, r.status, r.created_at, r.started_at, r.finished_at
    FROM unnest(${workflowIds}::uuid[]) AS wanted (id)
    CROSS JOIN LATERAL (
      SELECT * FROM workflow_runs r WHERE r.workflow_id = wanted.id AND r.version > 0 ORDER BY r.id DESC LIMIT ${each}
    ) r
    ORDER BY r.workflow_id, r.id DESC`;
}

function toRecentRun({ id, status, created_at, started_at, finished_at }: Row): RecentRun {
  return {
    ...{ id, status, created_at: created_at.toISOString() },
    started_at: started_at?.toISOString() ?? null,
    finished_at: finished_at?.toISOString() ?? null,
  };
}
