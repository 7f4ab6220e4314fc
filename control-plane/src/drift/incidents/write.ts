// Incidents: the first cause opens one, every change of the verdict is kept with it, and it ends when no cause is left.

import type { Tx } from "../../database/connect.ts";
import { toFile } from "../evidence/export.ts";
import type { Observation } from "../evidence/observation.ts";
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
};

export async function writeIncidents(tx: Tx, changes: readonly Change[]): Promise<void> {
  const ended = changes.flatMap(({ incident: { before, after } }) =>
    before !== null && after === null ? before : [],
  );
  const going = changes.flatMap(({ orgId, nodeId, causes, evidence, incident }) => {
    const [headline] = causes;
    return headline && incident.after !== null
      ? [{ orgId, nodeId, causes, evidence, headline, id: incident.after }]
      : [];
  });
  if (ended.length > 0) {
    await tx`UPDATE incidents SET closed_at = now(), compared = false WHERE id = ANY(${ended}::uuid[])`;
  }
  if (going.length === 0) return;
  const column = <Value>(read: (one: (typeof going)[number]) => Value): Value[] => going.map(read);
  await tx`
    INSERT INTO incidents AS i (id, org_id, node_id, began_at, reason_since, reason, signal, severity, owner, next_action, user_state,
      detect_seconds, repair_within, episodes)
    SELECT id, org_id, node_id, began_at, reason_since, reason, signal, severity, owner, next_action, user_state,
      detect_seconds, repair_within, ARRAY(SELECT json_array_elements_text(episodes::json))
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
      ${column(({ causes, evidence }) => JSON.stringify(episodesOf(evidence, Date.parse(earliest(causes)))))}::text[]
    ) AS r (id, org_id, node_id, began_at, reason_since, reason, signal, severity, owner, next_action, user_state,
            detect_seconds, repair_within, episodes)
    ON CONFLICT (id) DO UPDATE SET reason = excluded.reason, signal = excluded.signal, severity = excluded.severity,
      owner = excluded.owner, next_action = excluded.next_action, user_state = excluded.user_state,
      detect_seconds = excluded.detect_seconds, repair_within = excluded.repair_within,
      began_at = least(i.began_at, excluded.began_at),
      reason_since = CASE WHEN i.reason = excluded.reason THEN least(i.reason_since, excluded.reason_since)
                          ELSE excluded.reason_since END,
      compared = i.compared AND (i.reason, i.severity, i.next_action)
        IS NOT DISTINCT FROM (excluded.reason, excluded.severity, excluded.next_action)`;
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
