// Incidents: the first cause opens one, every change of the verdict is kept with it, and it ends when no cause is left. While
// only a recovery is being checked, the incident keeps the reason that the node had.

import type { Tx } from "../../database/connect.ts";
import { toFile } from "../evidence/export.ts";
import type { Observation } from "../evidence/observation.ts";
import { type Checklist, isChecking } from "../recovery/gate.ts";
import type { StoredCause } from "../verdicts/stored.ts";
import { episodesOf } from "./episodes.ts";

export type Change = {
  nodeId: string;
  orgId: string;
  /** Worst first; empty: the node is healthy. */
  causes: readonly StoredCause[];
  /** All that was known. */
  evidence: readonly Observation[];
  /** Null: none is open, or none is any more. */
  incident: { before: string | null; after: string | null };
  /** Undefined: its end needs no proof. */
  proofAfter: number | undefined;
  /** What the recovery rests on, when it is verified. */
  proof: Checklist | undefined;
};

export async function writeIncidents(tx: Tx, changes: readonly Change[]): Promise<void> {
  await endIncidents(tx, changes);
  const open = changes.flatMap(({ orgId, nodeId, causes, evidence, incident, proofAfter }): Going[] => {
    const [headline] = causes;
    if (!headline || incident.after === null) return [];
    const proof = proofAfter === undefined ? null : new Date(proofAfter);
    return [{ orgId, nodeId, causes, evidence, headline, id: incident.after, proofAfter: proof }];
  });
  const [checking, going] = [
    open.filter(({ causes }) => isChecking(causes)),
    open.filter(({ causes }) => !isChecking(causes)),
  ];
  if (checking.length > 0) {
    await tx`
      UPDATE incidents i SET checking_since = coalesce(i.checking_since, now()), proof_after = r.proof_after
      FROM unnest(${checking.map(({ id }) => id)}::uuid[],
        ${checking.map(({ proofAfter }) => proofAfter)}::timestamptz[]) AS r (id, proof_after)
      WHERE i.id = r.id`;
  }
  if (going.length > 0) await writeGoing(tx, going);
  if (open.length > 0) await writeVerdicts(tx, open);
}

type Going = Pick<Change, "orgId" | "nodeId" | "causes" | "evidence"> & {
  id: string;
  headline: StoredCause;
  proofAfter: Date | null;
};

async function endIncidents(tx: Tx, changes: readonly Change[]): Promise<void> {
  const ended = changes.flatMap(({ incident: { before, after }, proofAfter, proof }) =>
    before !== null && after === null ? [{ id: before, proofAfter, proof }] : [],
  );
  if (ended.length === 0) return;
  await tx`
    UPDATE incidents i SET closed_at = now(), compared = false, proof = r.proof::json,
      proof_after = coalesce(r.proof_after, i.proof_after)
    FROM unnest(${ended.map(({ id }) => id)}::uuid[],
      ${ended.map(({ proof }) => (proof === undefined ? null : JSON.stringify(proof)))}::text[],
      ${ended.map(({ proofAfter }) => (proofAfter === undefined ? null : new Date(proofAfter)))}::timestamptz[]
    ) AS r (id, proof, proof_after)
    WHERE i.id = r.id`;
}

async function writeGoing(tx: Tx, going: readonly Going[]): Promise<void> {
  const column = <Value>(read: (one: Going) => Value): Value[] => going.map(read);
  await tx`
    INSERT INTO incidents AS i (id, org_id, node_id, began_at, reason_since, reason, signal, severity, owner, next_action, user_state,
      detect_seconds, repair_within, proof_after, episodes)
    SELECT id, org_id, node_id, began_at, reason_since, reason, signal, severity, owner, next_action, user_state,
      detect_seconds, repair_within, proof_after, ARRAY(SELECT json_array_elements_text(episodes::json))
    FROM unnest(
      ${column(({ id }) => id)}::uuid[], ${column(({ orgId }) => orgId)}::uuid[],
      ${column(({ nodeId }) => nodeId)}::uuid[],
      ${column(({ causes }) => earliest(causes))}::timestamptz[],
      ${column(({ headline }) => headline.since)}::timestamptz[], ${column(({ headline }) => headline.reason)}::text[],
      ${column(({ headline }) => headline.signal)}::text[], ${column(({ headline }) => headline.severity)}::text[],
      ${column(({ headline }) => headline.owner)}::text[], ${column(({ headline }) => headline.nextAction)}::text[],
      ${column(({ headline }) => headline.userState)}::text[],
      ${column(({ headline }) => headline.budget.detect)}::integer[],
      ${column(({ headline }) => String(headline.budget.repair))}::text[],
      ${column(({ proofAfter }) => proofAfter)}::timestamptz[],
      ${column(({ causes, evidence }) => JSON.stringify(episodesOf(evidence, Date.parse(earliest(causes)))))}::text[]
    ) AS r (id, org_id, node_id, began_at, reason_since, reason, signal, severity, owner, next_action, user_state,
            detect_seconds, repair_within, proof_after, episodes)
    ON CONFLICT (id) DO UPDATE SET reason = excluded.reason, signal = excluded.signal, severity = excluded.severity,
      owner = excluded.owner, next_action = excluded.next_action, user_state = excluded.user_state,
      detect_seconds = excluded.detect_seconds, repair_within = excluded.repair_within,
      began_at = least(i.began_at, excluded.began_at), checking_since = NULL, proof_after = excluded.proof_after,
      reason_since = CASE WHEN i.reason = excluded.reason THEN least(i.reason_since, excluded.reason_since)
                          ELSE excluded.reason_since END,
      compared = i.compared AND (i.reason, i.severity, i.next_action)
        IS NOT DISTINCT FROM (excluded.reason, excluded.severity, excluded.next_action)`;
}

async function writeVerdicts(tx: Tx, open: readonly Going[]): Promise<void> {
  const column = <Value>(read: (one: Going) => Value): Value[] => open.map(read);
  await tx`
    INSERT INTO incident_verdicts (incident_id, org_id, causes, evidence)
    SELECT id, org_id, causes::json, evidence::json
    FROM unnest(${column(({ id }) => id)}::uuid[], ${column(({ orgId }) => orgId)}::uuid[],
      ${column(({ causes }) => JSON.stringify(causes))}::text[],
      ${column(({ evidence }) => JSON.stringify(evidence.map(toFile)))}::text[]) AS r (id, org_id, causes, evidence)`;
}

/** ISO texts of one zone sort by time. */
function earliest(causes: readonly StoredCause[]): string {
  return causes.map(({ since }) => since).sort()[0] ?? "";
}
