// The audit trail over HTTP.

import type { QueryOf } from "@holdfast/contracts/endpoint";
import { type AuditEvent, listAudit, listPlatformAudit } from "@holdfast/contracts/endpoints/audit";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { operatorRoute, orgRoute } from "../api/route.ts";
import type { Queryable } from "../database/connect.ts";

type AuditRow = Omit<AuditEvent, "at"> & { at: Date; org_id: string | null };

export function auditRoutes(api: ApiContext): void {
  orgRoute(api, listAudit, async ({ query, tx }) => {
    const rows = await selectAudit(tx, query, pageStart(listAudit, query.cursor));
    return toPage(listAudit, rows, {
      limit: query.limit,
      idOf: (row) => row.id,
      toItem: ({ org_id: _, ...row }) => ({ ...row, at: row.at.toISOString() }),
    });
  });

  operatorRoute(api, listPlatformAudit, async ({ query, tx }) => {
    const rows = await selectAudit(tx, query, pageStart(listPlatformAudit, query.cursor));
    return toPage(listPlatformAudit, rows, {
      limit: query.limit,
      idOf: (row) => row.id,
      toItem: (row) => ({ ...row, at: row.at.toISOString() }),
    });
  });
}

async function selectAudit(db: Queryable, filter: QueryOf<typeof listAudit>, before: string): Promise<AuditRow[]> {
  const only = {
    actor:
      filter.actor && db`AND (actor_id::text = ${filter.actor} OR actor_name ILIKE ${containing(filter.actor)})`,
    action: filter.action && actionFilter(db, filter.action),
    target:
      filter.target && db`AND (target_id = ${filter.target} OR target_name ILIKE ${containing(filter.target)})`,
    result: filter.result && db`AND result = ${filter.result}`,
    correlation: filter.correlation_id && db`AND correlation_id = ${filter.correlation_id}`,
    incident: filter.incident_id && db`AND incident_id = ${filter.incident_id}`,
    since: filter.since && db`AND at >= ${filter.since}`,
    until: filter.until && db`AND at < ${filter.until}`,
  };
  const none = db``;
  return db<AuditRow[]>`
    SELECT id, org_id, at, actor_type, actor_id, actor_name, role, action, target_type, target_id, target_name,
           result, reason, correlation_id, incident_id, details
    FROM audit_events
    WHERE id < ${before}
      ${only.actor || none} ${only.action || none} ${only.target || none} ${only.result || none}
      ${only.correlation || none} ${only.incident || none} ${only.since || none} ${only.until || none}
    ORDER BY id DESC LIMIT ${filter.limit + 1}`;
}

function actionFilter(db: Queryable, action: string) {
  return action.endsWith(".") ? db`AND action LIKE ${`${escapeLike(action)}%`}` : db`AND action = ${action}`;
}

function containing(text: string): string {
  return `%${escapeLike(text)}%`;
}

function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, "\\$&");
}
