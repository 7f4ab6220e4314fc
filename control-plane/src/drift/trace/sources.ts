// Everything that a story is made of, each source bounded by itself. Runs confined to one organization.

import { MOST_TRACED } from "@holdfast/contracts/endpoints/trace";
import { callerSql, reaches } from "../../allocations/access.ts";
import { isSeenBy } from "../../tasks/queries.ts";
import {
  type DeliveryRow,
  type ExecutionRow,
  type LeaseEventRow,
  type NotificationRow,
  type ObservationRow,
  ofAudit,
  ofDelivery,
  ofExecution,
  ofIncident,
  ofLeaseEvent,
  ofLine,
  ofNotification,
  ofObservation,
  ofTask,
  ofTerminal,
  ofVerdict,
  type TaskRow,
  type TerminalRow,
  type VerdictRow,
} from "./entries.ts";
import { newestOf, type Story, type TraceSource } from "./source.ts";

/** One more than is shown, to know whether there are more. */
const MOST = MOST_TRACED + 1;

/** A refused request may have named anything. */
const isUuid = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);

async function auditedTasks({ events }: Story): Promise<string[]> {
  return (await events()).flatMap(({ target_type, target_id }) =>
    target_type === "task" && target_id && isUuid(target_id) ? target_id : [],
  );
}

export const sources: readonly TraceSource[] = [
  {
    name: "incidents",
    read: async ({ incidents }) => ({ entries: incidents.flatMap(ofIncident), truncated: false }),
  },
  {
    name: "verdicts",
    read: async ({ tx, incidents, incidentIds }) => {
      const nodeOf = new Map(incidents.map(({ id, node_id }) => [id, node_id]));
      const rows = await tx<VerdictRow[]>`
        SELECT incident_id, at, causes FROM incident_verdicts WHERE incident_id = ANY(${incidentIds}::uuid[])
        ORDER BY at DESC LIMIT ${MOST}`;
      return newestOf(rows, MOST_TRACED, (row) => ofVerdict(row, nodeOf.get(row.incident_id) ?? null));
    },
  },
  {
    name: "observations",
    read: async ({ tx, incidentIds, correlationIds }) => {
      const rows = await tx<ObservationRow[]>`
        SELECT node_id, kind, key, value, observer, detail, observed_at, correlation_id FROM node_observations
        WHERE incident_id = ANY(${incidentIds}::uuid[]) OR correlation_id = ANY(${correlationIds}::text[])
        ORDER BY observed_at DESC LIMIT ${MOST}`;
      return newestOf(rows, MOST_TRACED, (row) => [ofObservation(row)]);
    },
  },
  {
    name: "audit",
    needs: "audit:read",
    read: async ({ events }) => newestOf(await events(), MOST_TRACED, (row) => [ofAudit(row)]),
  },
  {
    name: "tasks",
    needs: "tasks:read",
    read: async (story) => {
      const { tx, caller, incidentIds, taskIds, allocationId } = story;
      const audited = await auditedTasks(story);
      const rows = await tx<TaskRow[]>`
        SELECT t.id, t.node_id, t.type, t.status, t.failure, t.created_by, t.correlation_id, t.created_at, t.finished_at
        FROM tasks t WHERE (t.incident_id = ANY(${incidentIds}::uuid[])
          OR t.id = ANY(${[...taskIds, ...audited]}::uuid[])) AND ${isSeenBy(tx, caller)}
          AND (${allocationId}::uuid IS NULL OR t.allocation_id IS NULL OR t.allocation_id = ${allocationId}::uuid)
        ORDER BY t.id DESC LIMIT ${MOST}`;
      const created = new Set(audited);
      return newestOf(rows, MOST_TRACED, (row) => ofTask(row, { audited: created.has(row.id) }));
    },
  },
  {
    // To tenants, on their allocations' pages. By the allocations of the incidents' nodes, which have an index.
    name: "notifications",
    read: async ({ tx, caller, incidents, incidentIds, allocationId }) => {
      const nodeIds = incidents.flatMap(({ node_id }) => node_id ?? []);
      if (nodeIds.length === 0) return { entries: [], truncated: false };
      const rows = await tx<NotificationRow[]>`
        SELECT n.allocation_id, a.node_id, n.state, n.at
        FROM allocations a JOIN allocation_notifications n ON n.allocation_id = a.id
        WHERE a.node_id = ANY(${nodeIds}::uuid[]) AND n.incident_id = ANY(${incidentIds}::uuid[])
          AND (${allocationId}::uuid IS NULL OR a.id = ${allocationId}::uuid)
          AND ${reaches(tx, callerSql(tx, caller), "view")}
        ORDER BY n.id DESC LIMIT ${MOST}`;
      return newestOf(rows, MOST_TRACED, (row) => [ofNotification(row)]);
    },
  },
  {
    // That left the product, by webhook or mail.
    name: "deliveries",
    read: async ({ tx, incidentIds }) => {
      if (incidentIds.length === 0) return { entries: [], truncated: false };
      const rows = await tx<DeliveryRow[]>`
        SELECT d.id, d.event, d.state, d.kind, d.attempts, d.answer, r.address,
               coalesce(d.delivered_at, d.attempted_at, d.created_at) AS at
        FROM notification_deliveries d LEFT JOIN notification_receivers r ON r.id = d.receiver_id
        WHERE d.org_id = current_org() AND d.subject = ANY(${incidentIds}::text[])
        ORDER BY d.id DESC LIMIT ${MOST}`;
      return newestOf(rows, MOST_TRACED, (row) => [ofDelivery(row)]);
    },
  },
  {
    name: "terminals",
    read: async ({ tx, caller, correlationIds }) => {
      const rows = await tx<TerminalRow[]>`
        SELECT s.id, s.node_id, s.actor_name, s.failure, coalesce(s.closed_at, s.created_at) AS at, s.correlation_id
        FROM terminal_sessions s LEFT JOIN allocations a ON a.id = s.allocation_id
        WHERE (s.correlation_id = ANY(${correlationIds}::text[])
            OR s.failure IS NOT NULL AND s.failure ->> 'correlation_id' = ANY(${correlationIds}::text[]))
          AND ${reaches(tx, callerSql(tx, caller), "view")}
        ORDER BY s.id DESC LIMIT ${MOST}`;
      return newestOf(rows, MOST_TRACED, (row) => [ofTerminal(row)]);
    },
  },
  {
    name: "executions",
    needs: "executions:read",
    read: async ({ tx, correlationIds }) => {
      const rows = await tx<ExecutionRow[]>`
        SELECT id, request_id, kind, status, error, correlation_id, created_at, dispatched_at, accepted_at, finished_at
        FROM executions
        WHERE correlation_id = ANY(${correlationIds}::text[]) OR request_id = ANY(${correlationIds}::text[])
        ORDER BY id DESC LIMIT ${MOST}`;
      return newestOf(rows, MOST_TRACED, ofExecution);
    },
  },
  {
    name: "leases",
    needs: "leases:read",
    read: async ({ tx, correlationIds }) => {
      const rows = await tx<LeaseEventRow[]>`
        SELECT e.lease_id, l.host_id, l.correlation_id, l.actor_name, e.at, e.event, e.to_status, e.message
        FROM vm_leases l JOIN vm_lease_events e ON e.lease_id = l.id
        WHERE l.correlation_id = ANY(${correlationIds}::text[]) ORDER BY e.id DESC LIMIT ${MOST}`;
      return newestOf(rows, MOST_TRACED, (row) => [ofLeaseEvent(row)]);
    },
  },
  {
    name: "logs",
    read: async ({ lines, linesTruncated }) => ({
      entries: lines.slice(-MOST_TRACED).map(ofLine),
      truncated: linesTruncated || lines.length > MOST_TRACED,
    }),
  },
];
