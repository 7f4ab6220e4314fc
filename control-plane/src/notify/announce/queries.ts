// SQL of announcements. Runs as the system: it writes for all organizations.

import type { SharedAttribute } from "@holdfast/contracts/endpoints/incidents";
import type { OwnerId } from "@holdfast/contracts/reasons/owners";
import type { NextAction, Severity, UserState } from "@holdfast/contracts/reasons/vocabulary";
import type { Queryable, Tx } from "../../database/connect.ts";
import type { Announced } from "./plan.ts";

export type IncidentRow = {
  id: string;
  org_id: string;
  slug: string;
  org_name: string;
  node_id: string | null;
  node_name: string | null;
  part_of: string | null;
  compared: boolean;
  announced: Announced;
  qualifies: boolean;
  reason: string;
  severity: Severity;
  owner: OwnerId;
  next_action: NextAction;
  user_state: UserState;
  attribute: SharedAttribute | null;
  value: string | null;
  nodes: number;
  began_at: Date;
  opened_at: Date;
  closed_at: Date | null;
  outage_began_at: Date | null;
  outage_ended_at: Date | null;
};

/** Only one process announces at a time, so that nodes with one reason are gathered in one message. */
export async function tryToAnnounce(tx: Tx): Promise<boolean> {
  const [row] = await tx<{ taken: boolean }[]>`
    SELECT pg_try_advisory_xact_lock(hashtextextended('announce incidents', 0)) AS taken`;
  return row?.taken === true;
}

const isUnannounced = (db: Queryable) => db`
  (announced = 'nothing' OR (announced = 'recovered' AND closed_at IS NULL)) AND part_of IS NULL
    AND (severity = 'P0' OR user_state = 'security_action_required')`;
const isOver = (db: Queryable) => db`announced = 'opened' AND closed_at IS NOT NULL`;
const isPlatformDue = (db: Queryable) =>
  db`announced = 'nothing' OR (announced = 'opened' AND closed_at IS NOT NULL)`;

/** By two partial indexes and a small table, all of which have next to nothing at rest: this is all that is done then. */
export async function selectDue(system: Queryable): Promise<{ orgs: boolean; platform: boolean; now: Date }> {
  const [row] = await system<{ orgs: boolean; platform: boolean; now: Date }[]>`
    SELECT EXISTS (SELECT FROM incidents WHERE ${isUnannounced(system)})
        OR EXISTS (SELECT FROM incidents WHERE ${isOver(system)}) AS orgs,
      EXISTS (SELECT FROM platform_incidents WHERE ${isPlatformDue(system)}) AS platform, now() AS now`;
  return row ?? { orgs: false, platform: false, now: new Date() };
}

/**
 * Incidents of which nothing was said, and those of which something was and that are over.
 * Locks them, except those that are being written at this moment: it is their turn the next time.
 */
export async function selectCandidates(tx: Tx, most: number): Promise<IncidentRow[]> {
  return tx<IncidentRow[]>`
    SELECT i.id, i.org_id, o.slug, o.name AS org_name, i.node_id, n.name AS node_name, i.part_of, i.compared, i.announced,
           i.severity = 'P0' OR i.user_state = 'security_action_required' AS qualifies,
           i.reason, i.severity, i.owner, i.next_action, i.user_state, i.attribute, i.value, i.began_at, i.opened_at,
           i.closed_at, i.outage_began_at, i.outage_ended_at,
           CASE WHEN i.node_id IS NULL THEN (
             SELECT count(*)::int FROM incidents m
             WHERE m.part_of = i.id AND (m.closed_at IS NULL OR i.closed_at IS NOT NULL)) ELSE 1 END AS nodes
    FROM incidents i JOIN organizations o ON o.id = i.org_id LEFT JOIN nodes n ON n.id = i.node_id
    WHERE i.id IN (
      SELECT id FROM incidents WHERE ${isUnannounced(tx)}
      UNION ALL
      SELECT id FROM incidents WHERE ${isOver(tx)})
    ORDER BY i.id LIMIT ${most} FOR UPDATE OF i SKIP LOCKED`;
}

type TopicRow = { org_id: string; topic: string; queued_at: Date };

export async function selectTopics(tx: Tx, orgIds: readonly string[]): Promise<TopicRow[]> {
  return tx<TopicRow[]>`
    SELECT org_id, topic, queued_at FROM notification_topics WHERE org_id = ANY (${orgIds as string[]}::uuid[])`;
}

export async function writeTopics(tx: Tx, all: readonly { orgId: string; topic: string }[]): Promise<void> {
  if (all.length === 0) return;
  await tx`
    INSERT INTO notification_topics (org_id, topic, queued_at)
    SELECT org_id, topic, now() FROM unnest(${all.map(({ orgId }) => orgId)}::uuid[], ${all.map(({ topic }) => topic)}::text[])
      AS r (org_id, topic)
    ON CONFLICT (org_id, topic) DO UPDATE SET queued_at = excluded.queued_at`;
}

export async function markAnnounced(tx: Tx, all: readonly { id: string; announced: Announced }[]): Promise<void> {
  if (all.length === 0) return;
  await tx`
    UPDATE incidents i SET announced = r.announced
    FROM unnest(${all.map(({ id }) => id)}::uuid[], ${all.map(({ announced }) => announced)}::text[]) AS r (id, announced)
    WHERE i.id = r.id`;
}

export type PlatformRow = {
  id: string;
  reason: string;
  attribute: SharedAttribute;
  value: string;
  nodes: number;
  announced: Announced;
  began_at: Date;
  closed_at: Date | null;
  outage_began_at: Date | null;
  outage_ended_at: Date | null;
};

/** A small table. */
export async function selectPlatformCandidates(tx: Tx, most: number): Promise<PlatformRow[]> {
  return tx<PlatformRow[]>`
    SELECT id, reason, attribute, value, nodes, announced, began_at, closed_at, outage_began_at, outage_ended_at
    FROM platform_incidents
    WHERE ${isPlatformDue(tx)}
    ORDER BY id LIMIT ${most} FOR UPDATE SKIP LOCKED`;
}

export async function markPlatformAnnounced(tx: Tx, all: readonly PlatformRow[]): Promise<void> {
  if (all.length === 0) return;
  await tx`
    UPDATE platform_incidents SET announced = CASE WHEN closed_at IS NULL THEN 'opened' ELSE 'recovered' END
    WHERE id = ANY (${all.map(({ id }) => id)}::uuid[])`;
}
