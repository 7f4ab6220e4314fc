// Brings the verdict on nodes to their allocations: each gets its own user state, and a notification when that changes.
// Runs in the transaction of the verdict, under the lock of the node's verdict: neither exists without the other, and what
// is repeated writes nothing.

import type { UserState } from "@holdfast/contracts/reasons/vocabulary";
import { userStateTitles } from "@holdfast/contracts/words/state-titles";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Tx } from "../../database/connect.ts";
import {
  type Affecting,
  type Assessed,
  type OwnEvidence,
  ownKinds,
  tenantPolicy,
  userStateOf,
} from "./user-state.ts";

export type NodeVerdict = { nodeId: string; causes: readonly Affecting[]; incidentId: string | null; now: number };

export type FannedOut = {
  /** Ids of allocations whose user state changed. */
  changed: string[];
  /** By node: when time alone may change the state of one of its allocations. */
  reviewAt: Map<string, number>;
};

/** Of each allocation; older ones are removed as new ones are written. */
const KEPT_NOTIFICATIONS = 100;

type Row = { id: string; node_id: string; user_state: UserState };

export async function fanOut(tx: Tx, verdicts: readonly NodeVerdict[]): Promise<FannedOut> {
  const affected = verdicts.filter(({ causes }) => causes.some(({ userState }) => userState !== "normal"));
  const rows = await tx<Row[]>`
    SELECT id, node_id, user_state FROM allocations WHERE status <> 'released' AND (
      node_id = ANY(${affected.map(({ nodeId }) => nodeId)}::uuid[])
      OR (user_state <> 'normal' AND node_id = ANY(${verdicts.map(({ nodeId }) => nodeId)}::uuid[])))`;
  if (rows.length === 0) return { changed: [], reviewAt: new Map() };
  const evidence = await selectOwnEvidence(tx, rows);
  const byNode = new Map(verdicts.map((verdict) => [verdict.nodeId, verdict]));
  const reviewAt = new Map<string, number>();
  const changes = rows.flatMap(({ id, node_id, user_state }): Change[] => {
    const verdict = byNode.get(node_id);
    if (!verdict) return [];
    const own = { id, evidence: evidence.get(id) ?? [] };
    const assessed = userStateOf(verdict.causes, own, tenantPolicy, verdict.now);
    noteReview(reviewAt, node_id, assessed);
    return assessed.state === user_state ? [] : [{ id, state: assessed.state, incidentId: verdict.incidentId }];
  });
  await writeChanges(tx, changes);
  return { changed: changes.map(({ id }) => id), reviewAt };
}

function noteReview(reviewAt: Map<string, number>, nodeId: string, assessed: Assessed): void {
  if (assessed.reviewAt === undefined) return;
  reviewAt.set(nodeId, Math.min(assessed.reviewAt, reviewAt.get(nodeId) ?? Number.POSITIVE_INFINITY));
}

type OwnRow = Pick<OwnEvidence, "kind" | "value"> & { allocation_id: string; observed_at: Date };

/** Observations of the allocations, and their open terminals: one that is attached works as long as its gateway reports. */
async function selectOwnEvidence(tx: Tx, rows: readonly Row[]): Promise<Map<string, OwnEvidence[]>> {
  const ids = rows.map(({ id }) => id);
  const found = await tx<OwnRow[]>`
    SELECT s.allocation_id, 'terminal' AS kind, 'ready' AS value,
      CASE WHEN s.attached THEN g.last_seen_at ELSE (s.chain ->> 'pty_ready')::timestamptz END AS observed_at
    FROM terminal_sessions s JOIN gateways g ON g.id = s.gateway_id
    WHERE s.state = 'open' AND s.close_code IS NULL AND s.allocation_id = ANY(${ids}::uuid[])
      AND s.chain ->> 'pty_ready' IS NOT NULL
    UNION ALL
    SELECT o.key::uuid, o.kind, o.value, o.seen_at FROM node_observations o
    WHERE o.node_id = ANY(${[...new Set(rows.map(({ node_id }) => node_id))]}::uuid[]) AND o.replaced_at IS NULL
      AND o.kind = ANY(${[...ownKinds]}::text[]) AND o.key = ANY(${ids}::text[])`;
  const evidence = new Map<string, OwnEvidence[]>();
  for (const { allocation_id, observed_at, kind, value } of found) {
    const own = evidence.get(allocation_id) ?? [];
    own.push({ kind, value, observedAt: observed_at.getTime() });
    evidence.set(allocation_id, own);
  }
  return evidence;
}

type Change = { id: string; state: UserState; incidentId: string | null };

async function writeChanges(tx: Tx, changes: readonly Change[]): Promise<void> {
  if (changes.length === 0) return;
  const column = <Value>(read: (change: Change) => Value): Value[] => changes.map(read);
  const ids = column(({ id }) => id);
  await tx`
    WITH assessed AS (
      SELECT * FROM unnest(${ids}::uuid[], ${column(() => uuidv7())}::uuid[], ${column(({ state }) => state)}::text[],
        ${column(({ state }) => userStateTitles[state].title)}::text[],
        ${column(({ state }) => userStateTitles[state].meaning)}::text[],
        ${column(({ incidentId }) => incidentId)}::uuid[]
      ) AS t (id, notification_id, state, title, message, incident_id)
    ), moved AS (
      UPDATE allocations a SET user_state = assessed.state, user_state_since = now(), revision = revision + 1
      FROM assessed WHERE a.id = assessed.id
      RETURNING a.id, a.org_id, a.project_id
    )
    INSERT INTO allocation_notifications (id, org_id, project_id, allocation_id, state, title, message, incident_id)
    SELECT assessed.notification_id, moved.org_id, moved.project_id, moved.id, assessed.state, assessed.title, assessed.message,
           assessed.incident_id
    FROM assessed JOIN moved ON moved.id = assessed.id`;
  await tx`
    DELETE FROM allocation_notifications WHERE id IN (
      SELECT old.id FROM unnest(${ids}::uuid[]) AS a (id),
      LATERAL (SELECT n.id FROM allocation_notifications n WHERE n.allocation_id = a.id
        ORDER BY n.id DESC OFFSET ${KEPT_NOTIFICATIONS}) AS old)`;
}
