// What an id that somebody quotes belongs to: incidents, and the correlation ids under which something was recorded. Runs
// confined to one organization: the id of another one's is as unknown as any other.

import type { Trace } from "@holdfast/contracts/endpoints/trace";
import type { Scope } from "@holdfast/contracts/public/permissions";
import type { Caller } from "../../allocations/access.ts";
import type { Tx } from "../../database/connect.ts";
import { isSeenBy } from "../../tasks/queries.ts";

/** Who asks, and what they may see. */
export type Viewer = { caller: Caller; holds(scope: Scope): boolean };

export type Resolved = {
  foundAs: Trace["found_as"];
  incidentIds: string[];
  correlationIds: string[];
  taskIds: string[];
  /** Set: nothing of other allocations belongs to the story, whatever happened on the same node. */
  allocationId: string | null;
};

/** More would be no story; an id that many incidents share is that of a process. */
const MOST_INCIDENTS = 20;

const isUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

type Found = { incident_id: string | null; correlation_id: string | null; task_id?: string | null };

export async function resolve(tx: Tx, id: string, { caller, holds }: Viewer): Promise<Resolved> {
  const [audit, seesTasks] = [holds("audit:read"), holds("tasks:read")];
  const uuid = isUuid.test(id) ? id : null;
  const [incidents, tasks, events, recorded] = [
    await tx<Found[]>`SELECT id AS incident_id, NULL AS correlation_id FROM incidents WHERE id = ${uuid}::uuid`,
    await tx<Found[]>`
      SELECT t.id AS task_id, t.incident_id, t.correlation_id FROM tasks t
      WHERE t.id = ${uuid}::uuid AND ${seesTasks} AND ${isSeenBy(tx, caller)}`,
    audit ? await tx<Found[]>`SELECT incident_id, correlation_id FROM audit_events WHERE id = ${uuid}::uuid` : [],
    await selectRecorded(tx, id, holds),
  ];
  const all = [...incidents, ...tasks, ...events, ...recorded];
  const ids = unique(all.map(({ incident_id }) => incident_id)).slice(0, MOST_INCIDENTS);
  return {
    foundAs: [
      ...(incidents.length > 0 ? (["incident"] as const) : []),
      ...(tasks.length > 0 ? (["task"] as const) : []),
      ...(events.length > 0 ? (["audit_event"] as const) : []),
      ...(recorded.length > 0 ? (["correlation"] as const) : []),
    ],
    incidentIds: ids,
    // Recoveries are recorded under the id of their incident.
    correlationIds: unique([id, ...ids, ...[...tasks, ...events].map(({ correlation_id }) => correlation_id)]),
    taskIds: unique(all.map(({ task_id }) => task_id ?? null)),
    allocationId: null,
  };
}

/** Under a correlation id: in the audit, by a host in the course of an incident, as an observation, of a terminal, an execution or a lease. */
function selectRecorded(tx: Tx, id: string, holds: Viewer["holds"]): Promise<Found[]> {
  return tx<Found[]>`
    SELECT DISTINCT incident_id, NULL AS correlation_id,
           CASE WHEN target_type = 'task' THEN target_id END AS task_id
    FROM audit_events WHERE correlation_id = ${id} AND ${holds("audit:read")}
    UNION SELECT id, NULL, NULL FROM incidents WHERE episodes @> ARRAY[${id}::text]
    UNION SELECT incident_id, NULL, NULL FROM node_observations WHERE correlation_id = ${id}
    UNION SELECT NULL, NULL, NULL FROM node_presence WHERE correlation_id = ${id}
    UNION SELECT NULL, NULL, task_id::text FROM terminal_sessions
      WHERE correlation_id = ${id} OR failure ->> 'correlation_id' = ${id}
    UNION SELECT NULL, NULL, NULL FROM executions
      WHERE ${holds("executions:read")} AND (correlation_id = ${id} OR request_id = ${id})
    UNION SELECT NULL, NULL, launch_task_id::text FROM vm_leases
      WHERE ${holds("leases:read")} AND correlation_id = ${id}`;
}

const unique = (ids: readonly (string | null)[]) => [...new Set(ids)].filter((id) => id !== null);
