// Reads the parts of a story. Runs confined to one organization; each part is bounded.

import { MOST_TRACED, type Trace } from "@holdfast/contracts/endpoints/trace";
import { titleOf } from "@holdfast/contracts/reasons/catalogue";
import { type Caller, callerSql, reaches } from "../../allocations/access.ts";
import type { Tx } from "../../database/connect.ts";
import { isSeenBy } from "../../tasks/queries.ts";
import {
  type AuditRow,
  type IncidentRow,
  inOrder,
  type NotificationRow,
  type ObservationRow,
  ofAudit,
  ofIncident,
  ofNotification,
  ofObservation,
  ofTask,
  ofTerminal,
  ofVerdict,
  type TaskRow,
  type TerminalRow,
  type VerdictRow,
} from "./entries.ts";
import type { Resolved } from "./resolve.ts";

type Story = Pick<Trace, "incidents" | "items" | "truncated">;
const MOST = MOST_TRACED + 1;

export async function readStory(
  tx: Tx,
  { incidentIds, correlationIds, taskIds }: Resolved,
  { caller, audit, tasks: seesTasks }: { caller: Caller; audit: boolean; tasks: boolean },
): Promise<Story> {
  const incidents = await tx<IncidentRow[]>`
    SELECT i.id, i.node_id, n.name AS node_name, i.reason, i.began_at, i.opened_at, i.closed_at, i.proof
    FROM incidents i LEFT JOIN nodes n ON n.id = i.node_id WHERE i.id = ANY(${incidentIds}::uuid[])
    ORDER BY i.id DESC`;
  const verdicts = await tx<VerdictRow[]>`
    SELECT incident_id, at, causes FROM incident_verdicts WHERE incident_id = ANY(${incidentIds}::uuid[])
    ORDER BY at DESC LIMIT ${MOST}`;
  const observations = await tx<ObservationRow[]>`
    SELECT node_id, kind, key, value, observer, detail, observed_at, correlation_id FROM node_observations
    WHERE incident_id = ANY(${incidentIds}::uuid[]) OR correlation_id = ANY(${correlationIds}::text[])
    ORDER BY observed_at DESC LIMIT ${MOST}`;
  const events = audit
    ? [...(await selectAudit(tx, incidentIds, correlationIds)), ...(await selectAuditBefore(tx, incidents))]
    : [];
  const audited = events.flatMap(({ target_type, target_id }) =>
    target_type === "task" && target_id ? target_id : [],
  );
  const tasks = seesTasks
    ? await tx<TaskRow[]>`
        SELECT t.id, t.node_id, t.type, t.status, t.failure, t.created_by, t.correlation_id, t.created_at, t.finished_at
        FROM tasks t WHERE (t.incident_id = ANY(${incidentIds}::uuid[])
          OR t.id = ANY(${[...taskIds, ...audited.filter(isUuid)]}::uuid[])) AND ${isSeenBy(tx, caller)}
        ORDER BY t.id DESC LIMIT ${MOST}`
    : [];
  const notifications = await selectNotifications(tx, incidents, caller);
  const terminals = await selectTerminals(tx, correlationIds, caller);
  const nodeOf = new Map(incidents.map(({ id, node_id }) => [id, node_id]));
  const created = new Set(audited);
  const sources = [verdicts, observations, events, tasks, notifications, terminals];
  return {
    incidents: incidents.map(presentIncident),
    items: inOrder([
      ...incidents.flatMap(ofIncident),
      ...newest(verdicts).flatMap((row) => ofVerdict(row, nodeOf.get(row.incident_id) ?? null)),
      ...newest(observations).map(ofObservation),
      ...newest(events).map(ofAudit),
      ...newest(tasks).flatMap((row) => ofTask(row, { audited: created.has(row.id) })),
      ...newest(notifications).map(ofNotification),
      ...newest(terminals).map(ofTerminal),
    ]),
    truncated: sources.some(({ length }) => length > MOST_TRACED),
  };
}

const newest = <Row>(rows: readonly Row[]): readonly Row[] => rows.slice(0, MOST_TRACED);

/** A refused request may have named anything. */
const isUuid = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);

function selectAudit(tx: Tx, incidentIds: string[], correlationIds: string[]): Promise<AuditRow[]> {
  return tx<AuditRow[]>`
    SELECT id, at, actor_type, actor_id, actor_name, role, action, target_type, target_id, target_name, result, reason,
           correlation_id, incident_id, details
    FROM audit_events
    WHERE incident_id = ANY(${incidentIds}::uuid[]) OR correlation_id = ANY(${correlationIds}::text[])
    ORDER BY id DESC LIMIT ${MOST}`;
}

/** What led to an incident is older than the incident. Longer ago, an organization may have done very much else. */
const BEFORE_MS = 60_000;
/** An event has the time of the beginning of its transaction, which may be another moment than that of the change. */
const TOLERANCE_MS = 5_000;

/** Of the nodes themselves, from the time that something was wrong until it was noticed. */
async function selectAuditBefore(tx: Tx, incidents: readonly IncidentRow[]): Promise<AuditRow[]> {
  const before = incidents.flatMap(({ node_id, began_at, opened_at }) =>
    node_id === null
      ? []
      : [
          {
            nodeId: node_id,
            from: new Date(Math.max(began_at.getTime(), opened_at.getTime() - BEFORE_MS) - TOLERANCE_MS),
            until: new Date(opened_at.getTime() + TOLERANCE_MS),
          },
        ],
  );
  if (before.length === 0) return [];
  return tx<AuditRow[]>`
    SELECT e.id, e.at, e.actor_type, e.actor_id, e.actor_name, e.role, e.action, e.target_type, e.target_id, e.target_name,
           e.result, e.reason, e.correlation_id, e.incident_id, e.details
    FROM unnest(${before.map(({ nodeId }) => nodeId)}::text[], ${before.map(({ from }) => from)}::timestamptz[],
      ${before.map(({ until }) => until)}::timestamptz[]) AS i (node_id, from_at, until_at)
    JOIN audit_events e ON e.target_id = i.node_id AND e.at BETWEEN i.from_at AND i.until_at
    WHERE e.org_id = current_org() AND e.target_type = 'node' AND e.incident_id IS NULL
    ORDER BY e.id DESC LIMIT ${MOST}`;
}

/** By the allocations of the incidents' nodes, which have an index. */
function selectNotifications(
  tx: Tx,
  incidents: readonly IncidentRow[],
  caller: Caller,
): Promise<NotificationRow[]> | [] {
  const nodeIds = incidents.flatMap(({ node_id }) => node_id ?? []);
  if (nodeIds.length === 0) return [];
  return tx<NotificationRow[]>`
    SELECT n.allocation_id, a.node_id, n.state, n.at
    FROM allocations a JOIN allocation_notifications n ON n.allocation_id = a.id
    WHERE a.node_id = ANY(${nodeIds}::uuid[]) AND n.incident_id = ANY(${incidents.map(({ id }) => id)}::uuid[])
      AND ${reaches(tx, callerSql(tx, caller), "view")}
    ORDER BY n.id DESC LIMIT ${MOST}`;
}

function selectTerminals(tx: Tx, correlationIds: string[], caller: Caller): Promise<TerminalRow[]> {
  return tx<TerminalRow[]>`
    SELECT s.id, s.node_id, s.actor_name, s.failure, coalesce(s.closed_at, s.created_at) AS at, s.correlation_id
    FROM terminal_sessions s JOIN allocations a ON a.id = s.allocation_id
    WHERE (s.correlation_id = ANY(${correlationIds}::text[])
        OR s.failure IS NOT NULL AND s.failure ->> 'correlation_id' = ANY(${correlationIds}::text[]))
      AND ${reaches(tx, callerSql(tx, caller), "view")}
    ORDER BY s.id DESC LIMIT ${MOST}`;
}

function presentIncident(row: IncidentRow): Trace["incidents"][number] {
  const { id, node_id, node_name, reason, opened_at, closed_at } = row;
  return {
    ...{ id, node_id, node_name, reason, title: titleOf(reason), state: closed_at ? "closed" : "open" },
    ...{ opened_at: opened_at.toISOString(), closed_at: closed_at?.toISOString() ?? null },
  };
}
