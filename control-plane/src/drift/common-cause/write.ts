// Writes common causes and their organizations' incidents, and makes incidents of nodes part of them.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { Tx } from "../../database/connect.ts";
import type { FleetRow } from "./queries.ts";
import { type IdentifiedCause, type OrgCause, orgKeyOf } from "./share.ts";

const timeOf = (ms: number | null | undefined) => (ms === null || ms === undefined ? null : new Date(ms));

export async function writePlatformIncidents(
  tx: Tx,
  causes: readonly IdentifiedCause[],
  ofOrgs: readonly OrgCause[],
): Promise<void> {
  if (causes.length === 0) return;
  const orgs = Map.groupBy(ofOrgs, ({ cause }) => cause.id);
  await tx`
    INSERT INTO platform_incidents AS p (id, reason, attribute, value, began_at, outage_began_at, outage_ended_at, nodes,
      organizations)
    SELECT * FROM unnest(
      ${causes.map(({ id }) => id)}::uuid[], ${causes.map(({ reason }) => reason)}::text[],
      ${causes.map(({ attribute }) => attribute)}::text[], ${causes.map(({ value }) => value)}::text[],
      ${causes.map(({ since }) => timeOf(since))}::timestamptz[],
      ${causes.map(({ outage }) => timeOf(outage?.from))}::timestamptz[],
      ${causes.map(({ outage }) => timeOf(outage?.to))}::timestamptz[],
      ${causes.map(({ nodes }) => nodes.length)}::integer[], ${causes.map(({ id }) => orgs.get(id)?.length ?? 0)}::integer[])
    ON CONFLICT (id) DO UPDATE SET began_at = excluded.began_at, outage_began_at = excluded.outage_began_at,
      outage_ended_at = excluded.outage_ended_at, nodes = excluded.nodes, organizations = excluded.organizations`;
}

/** Returns the ids of the organizations' incidents, by organization and cause. */
export async function writeOrgIncidents(tx: Tx, all: readonly OrgCause[]): Promise<Map<string, string>> {
  if (all.length === 0) return new Map();
  const column = <Value>(read: (one: OrgCause) => Value): Value[] => all.map(read);
  const rows = await tx<{ id: string; org_id: string; platform_incident_id: string }[]>`
    INSERT INTO incidents AS i (id, org_id, platform_incident_id, attribute, value, began_at, reason_since,
      outage_began_at, outage_ended_at, reason, signal, severity, owner, next_action, user_state, detect_seconds,
      repair_within, compared)
    SELECT r.*, true FROM unnest(
      ${column(() => uuidv7())}::uuid[], ${column(({ orgId }) => orgId)}::uuid[],
      ${column(({ cause }) => cause.id)}::uuid[], ${column(({ cause }) => cause.attribute)}::text[],
      ${column(({ cause }) => cause.value)}::text[],
      ${column(({ since }) => timeOf(since))}::timestamptz[], ${column(({ since }) => timeOf(since))}::timestamptz[],
      ${column(({ cause }) => timeOf(cause.outage?.from))}::timestamptz[],
      ${column(({ cause }) => timeOf(cause.outage?.to))}::timestamptz[],
      ${column(({ cause }) => cause.reason)}::text[], ${column(({ answer }) => answer.signal)}::text[],
      ${column(({ answer }) => answer.severity)}::text[], ${column(({ answer }) => answer.owner)}::text[],
      ${column(({ answer }) => answer.next_action)}::text[], ${column(({ answer }) => answer.user_state)}::text[],
      ${column(({ answer }) => answer.detect_seconds)}::integer[],
      ${column(({ answer }) => answer.repair_within)}::text[]
    ) AS r
    ON CONFLICT (platform_incident_id, org_id) WHERE platform_incident_id IS NOT NULL DO UPDATE SET closed_at = NULL, severity = excluded.severity,
      owner = excluded.owner, next_action = excluded.next_action, user_state = excluded.user_state,
      signal = excluded.signal, detect_seconds = excluded.detect_seconds, repair_within = excluded.repair_within,
      began_at = least(i.began_at, excluded.began_at), reason_since = least(i.reason_since, excluded.reason_since),
      outage_began_at = excluded.outage_began_at, outage_ended_at = excluded.outage_ended_at
    RETURNING id, org_id, platform_incident_id`;
  return new Map(rows.map((row) => [orgKeyOf(row.org_id, row.platform_incident_id), row.id]));
}

export type Link = Pick<FleetRow, "incident_id" | "reason" | "reason_since"> & { partOf: string | null };

/**
 * Returns the nodes of those that became, or are no longer, part of another one. An incident that is being written at this
 * moment, or changed since it was read, is left out: it is compared the next time. So this never waits for whoever
 * classifies, who may be waiting for it.
 */
export async function linkIncidents(tx: Tx, links: readonly Link[]): Promise<string[]> {
  if (links.length === 0) return [];
  const rows = await tx<{ node_id: string; moved: boolean }[]>`
    WITH free AS (
      SELECT i.id, r.part_of, i.part_of IS DISTINCT FROM r.part_of AS moved
      FROM unnest(${links.map(({ incident_id }) => incident_id)}::uuid[], ${links.map(({ reason }) => reason)}::text[],
        ${links.map(({ reason_since }) => reason_since)}::timestamptz[],
        ${links.map(({ partOf }) => partOf)}::uuid[]) AS r (id, reason, since, part_of)
      JOIN incidents i ON i.id = r.id AND i.closed_at IS NULL AND i.reason = r.reason
        AND date_trunc('milliseconds', i.reason_since) = r.since
      FOR UPDATE OF i SKIP LOCKED
    )
    UPDATE incidents i SET part_of = free.part_of, compared = true FROM free WHERE i.id = free.id
    RETURNING i.node_id, free.moved`;
  return rows.flatMap(({ node_id, moved }) => (moved ? node_id : []));
}

/** Those of which fewer nodes than necessary are left. Incidents of nodes that were over before stay part of them. */
export async function closeOthers(
  tx: Tx,
  causes: readonly IdentifiedCause[],
  ofOrgs: readonly OrgCause[],
): Promise<void> {
  await tx`
    UPDATE platform_incidents SET closed_at = now()
    WHERE closed_at IS NULL AND id <> ALL (${causes.map(({ id }) => id)}::uuid[])`;
  await tx`
    UPDATE incidents i SET closed_at = now() WHERE i.node_id IS NULL AND i.closed_at IS NULL AND NOT EXISTS (
      SELECT FROM unnest(${ofOrgs.map(({ orgId }) => orgId)}::uuid[], ${ofOrgs.map(({ cause }) => cause.id)}::uuid[])
        AS r (org_id, platform_incident_id)
      WHERE r.org_id = i.org_id AND r.platform_incident_id = i.platform_incident_id)`;
}

/** They are part of nothing, unless they were until they ended. Does not wait, either. */
export async function markCompared(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx`
    WITH free AS (
      SELECT id FROM incidents WHERE id = ANY(${ids as string[]}::uuid[]) FOR UPDATE SKIP LOCKED)
    UPDATE incidents i SET compared = true, part_of = CASE WHEN i.closed_at IS NULL THEN NULL ELSE i.part_of END
    FROM free WHERE i.id = free.id`;
}
