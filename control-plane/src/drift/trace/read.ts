// Reads a story from all its sources. Runs confined to one organization; each source is bounded.

import { MOST_TRACED, type Trace } from "@holdfast/contracts/endpoints/trace";
import { titleOf } from "@holdfast/contracts/reasons/catalogue";
import type { Tx } from "../../database/connect.ts";
import type { Gathered } from "../../logs/ask.ts";
import { type AuditRow, type Entry, type IncidentRow, inOrder } from "./entries.ts";
import type { Resolved, Viewer } from "./resolve.ts";
import type { Story } from "./source.ts";
import { sources } from "./sources.ts";

const MOST = MOST_TRACED + 1;

export async function readStory(
  tx: Tx,
  { incidentIds, correlationIds, taskIds, allocationId }: Resolved,
  { caller, holds }: Viewer,
  logs: Pick<Gathered, "lines" | "truncated">,
): Promise<Pick<Trace, "incidents" | "items" | "truncated" | "withheld">> {
  const incidents = await tx<IncidentRow[]>`
    SELECT i.id, i.node_id, n.name AS node_name, i.reason, i.began_at, i.opened_at, i.closed_at, i.proof
    FROM incidents i LEFT JOIN nodes n ON n.id = i.node_id WHERE i.id = ANY(${incidentIds}::uuid[])
    ORDER BY i.id DESC`;
  let events: Promise<readonly AuditRow[]> | undefined;
  const story: Story = {
    ...{ tx, caller, incidents, incidentIds, correlationIds, taskIds, allocationId },
    events: () => {
      events ??= holds("audit:read")
        ? selectEvents(tx, incidents, { incidentIds: allocationId === null ? incidentIds : [], correlationIds })
        : Promise.resolve([]);
      return events;
    },
    ...{ lines: logs.lines, linesTruncated: logs.truncated },
  };
  const entries: Entry[] = [];
  const withheld = new Set<string>();
  let truncated = false;
  for (const { needs, read } of sources) {
    if (needs !== undefined && !holds(needs)) {
      withheld.add(needs);
      continue;
    }
    const found = await read(story);
    entries.push(...found.entries);
    truncated ||= found.truncated;
  }
  return {
    ...{ incidents: incidents.map(presentIncident), items: inOrder(entries), truncated },
    withheld: [...withheld],
  };
}

async function selectEvents(
  tx: Tx,
  incidents: readonly IncidentRow[],
  { incidentIds, correlationIds }: Pick<Resolved, "incidentIds" | "correlationIds">,
): Promise<AuditRow[]> {
  return [...(await selectAudit(tx, incidentIds, correlationIds)), ...(await selectAuditBefore(tx, incidents))];
}

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

function presentIncident(row: IncidentRow): Trace["incidents"][number] {
  const { id, node_id, node_name, reason, opened_at, closed_at } = row;
  return {
    ...{ id, node_id, node_name, reason, title: titleOf(reason), state: closed_at ? "closed" : "open" },
    ...{ opened_at: opened_at.toISOString(), closed_at: closed_at?.toISOString() ?? null },
  };
}
