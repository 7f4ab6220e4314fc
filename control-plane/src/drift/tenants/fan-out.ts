// Brings the verdict on nodes to their allocations: each gets its own user state, and a notification when that changes, which
// waits while the control plane is suspected. Runs in the transaction of the verdict, under the lock of the node's verdict:
// neither exists without the other, and what is repeated writes nothing.

import type { UserState } from "@holdfast/contracts/reasons/vocabulary";
import type { Tx } from "../../database/connect.ts";
import { type Noticed, noticeOf } from "./notice.ts";
import { insertNotifications } from "./notify.ts";
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

type Row = { id: string; node_id: string; user_state: UserState; notified_state: UserState | null };

/** `isBraked` is asked only if there is something to say. */
export async function fanOut(
  tx: Tx,
  verdicts: readonly NodeVerdict[],
  isBraked: () => Promise<boolean>,
): Promise<FannedOut> {
  const affected = verdicts.filter(({ causes }) => causes.some(({ userState }) => userState !== "normal"));
  const rows = await tx<Row[]>`
    SELECT id, node_id, user_state, notified_state FROM allocations WHERE status <> 'released' AND (
      node_id = ANY(${affected.map(({ nodeId }) => nodeId)}::uuid[])
      OR (user_state <> 'normal' AND node_id = ANY(${verdicts.map(({ nodeId }) => nodeId)}::uuid[])))`;
  if (rows.length === 0) return { changed: [], reviewAt: new Map() };
  const evidence = await selectOwnEvidence(tx, rows);
  const byNode = new Map(verdicts.map((verdict) => [verdict.nodeId, verdict]));
  const reviewAt = new Map<string, number>();
  const assessments = rows.flatMap((row) => {
    const verdict = byNode.get(row.node_id);
    if (!verdict) return [];
    const own = { id: row.id, evidence: evidence.get(row.id) ?? [] };
    const assessed = userStateOf(verdict.causes, own, tenantPolicy, verdict.now);
    noteReview(reviewAt, row.node_id, assessed);
    return assessed.state === row.user_state ? [] : [{ row, next: assessed.state, verdict }];
  });
  if (assessments.length === 0) return { changed: [], reviewAt };
  const braked = await isBraked();
  const changes = assessments.map(({ row, next, verdict: { incidentId } }): Change => {
    const { id, user_state: shown, notified_state: notified } = row;
    return { id, state: next, incidentId, ...noticeOf({ shown, notified, next, braked }) };
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

type Change = { id: string; state: UserState; incidentId: string | null } & Noticed;

async function writeChanges(tx: Tx, changes: readonly Change[]): Promise<void> {
  if (changes.length === 0) return;
  const column = <Value>(read: (change: Change) => Value): Value[] => changes.map(read);
  await tx`
    UPDATE allocations a SET user_state = t.state, user_state_since = now(), notified_state = t.notified,
      revision = revision + 1
    FROM unnest(${column(({ id }) => id)}::uuid[], ${column(({ state }) => state)}::text[],
      ${column(({ notified }) => notified)}::text[]) AS t (id, state, notified)
    WHERE a.id = t.id`;
  await insertNotifications(
    tx,
    changes.filter(({ send }) => send),
  );
}
