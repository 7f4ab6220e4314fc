// The one writer of evidence. Whoever observes something hands it over here; a change makes the node due for
// classification in the same transaction. Observations are repeated or replaced soon, so commits do not wait for the disk.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { Sql, Tx } from "../../database/connect.ts";
import { mergeObservation } from "./merge.ts";
import type { Kind, Observer, Values } from "./observation.ts";

export type NewObservation = {
  [K in Kind]: {
    nodeId: string;
    kind: K;
    key?: string;
    value: Values[K];
    observer: Observer;
    observedAt: Date;
    detail?: Readonly<Record<string, string | number | boolean | null>>;
    correlationId?: string | undefined;
  };
}[Kind];

/** Of each kind and key of a node; the newest is one of them. */
const KEPT_CHANGES = 20;

/** What was given of a node includes all findings that it has: any other one is over. */
export type AllFindings = { nodeId: string; observedAt: Date };

/** Returns the ids of nodes whose evidence changed. Nodes that do not exist are left out. */
export async function recordObservations(
  system: Sql,
  given: readonly NewObservation[],
  complete: readonly AllFindings[] = [],
): Promise<string[]> {
  if (given.length + complete.length === 0) return [];
  return system.begin((tx) => record(tx, given, complete), { settings: { synchronous_commit: "off" } });
}

/** In the transaction of whoever hands it in. */
export const recordObservationsIn = (tx: Tx, given: readonly NewObservation[]): Promise<string[]> =>
  record(tx, given, []);

type Locked = { node_id: string; org_id: string; incident_id: string | null };
type Row = {
  id: string;
  node_id: string;
  kind: string;
  key: string;
  value: string;
  observed_at: Date;
  seen_at: Date;
};

async function record(
  tx: Tx,
  observations: readonly NewObservation[],
  complete: readonly AllFindings[],
): Promise<string[]> {
  const ids = [...new Set([...observations, ...complete].map(({ nodeId }) => nodeId))].sort();
  // In order of the ids, so that no two writers wait for each other.
  const locked = await tx<Locked[]>`
    INSERT INTO node_verdicts AS v (node_id, org_id)
    SELECT id, org_id FROM nodes WHERE id = ANY(${ids}::uuid[]) ORDER BY id
    ON CONFLICT (node_id) DO UPDATE SET node_id = v.node_id
    RETURNING node_id, org_id, incident_id`;
  const nodes = new Map(locked.map((one) => [one.node_id, one]));
  const rows = await tx<Row[]>`
    SELECT id, node_id, kind, key, value, observed_at, seen_at FROM node_observations
    WHERE node_id = ANY(${[...nodes.keys()]}::uuid[]) AND replaced_at IS NULL`;
  const newest = new Map(rows.map((row) => [placeOf(row.node_id, row.kind, row.key), row]));

  const given = [...observations, ...endedFindings(rows, observations, complete)];
  const inserted: (NewObservation & { id: string; replaced: boolean })[] = [];
  const replaced: string[] = [];
  const repeated: { id: string; seenAt: Date; detail: string | null }[] = [];
  const changed = new Set<string>();
  for (const one of given.toSorted((a, b) => a.observedAt.getTime() - b.observedAt.getTime())) {
    if (!nodes.has(one.nodeId)) continue;
    const place = placeOf(one.nodeId, one.kind, one.key ?? "");
    const known = newest.get(place);
    const merged = mergeObservation(
      known && { value: known.value, observedAt: known.observed_at.getTime(), seenAt: known.seen_at.getTime() },
      { value: one.value, observedAt: one.observedAt.getTime() },
    );
    if (merged === "ignore") continue;
    changed.add(one.nodeId);
    if (known && merged === "repeat") {
      known.seen_at = one.observedAt;
      const own = inserted.find(({ id }) => id === known.id);
      if (own) continue;
      repeated.push({ id: known.id, seenAt: one.observedAt, detail: textOf(one.detail) });
      continue;
    }
    const id = uuidv7();
    inserted.push({ ...one, id, replaced: merged === "late" });
    if (merged === "late") continue;
    const own = known && inserted.find((other) => other.id === known.id);
    if (own) own.replaced = true;
    else if (known) replaced.push(known.id);
    const { nodeId: node_id, kind, value, observedAt: observed_at } = one;
    newest.set(place, { id, node_id, kind, key: one.key ?? "", value, observed_at, seen_at: observed_at });
  }
  if (changed.size === 0) return [];

  await tx`UPDATE node_observations SET replaced_at = now() WHERE id = ANY(${replaced}::uuid[])`;
  await tx`
    UPDATE node_observations o SET seen_at = r.seen_at, detail = r.detail::json
    FROM unnest(${repeated.map(({ id }) => id)}::uuid[], ${repeated.map(({ seenAt }) => seenAt)}::timestamptz[],
      ${repeated.map(({ detail }) => detail)}::text[]) AS r (id, seen_at, detail) WHERE o.id = r.id`;
  await insert(tx, inserted, nodes);
  await tx`UPDATE node_verdicts SET review_at = now() WHERE node_id = ANY(${[...changed].sort()}::uuid[])`;
  await removeOld(tx, inserted);
  return [...changed];
}

async function insert(
  tx: Tx,
  rows: readonly (NewObservation & { id: string; replaced: boolean })[],
  nodes: ReadonlyMap<string, Locked>,
): Promise<void> {
  if (rows.length === 0) return;
  await tx`
    INSERT INTO node_observations
      (id, org_id, node_id, kind, key, value, observer, detail, observed_at, seen_at, correlation_id, incident_id,
       replaced_at)
    SELECT id, org_id, node_id, kind, key, value, observer, detail::json, observed_at, observed_at, correlation_id,
           incident_id, CASE WHEN replaced THEN now() END
    FROM unnest(
      ${rows.map(({ id }) => id)}::uuid[], ${rows.map(({ nodeId }) => nodes.get(nodeId)?.org_id ?? null)}::uuid[],
      ${rows.map(({ nodeId }) => nodeId)}::uuid[], ${rows.map(({ kind }) => kind)}::text[],
      ${rows.map(({ key }) => key ?? "")}::text[], ${rows.map(({ value }) => value)}::text[],
      ${rows.map(({ observer }) => observer)}::text[], ${rows.map(({ detail }) => textOf(detail))}::text[],
      ${rows.map(({ observedAt }) => observedAt)}::timestamptz[],
      ${rows.map(({ correlationId }) => correlationId ?? null)}::text[],
      ${rows.map(({ nodeId }) => nodes.get(nodeId)?.incident_id ?? null)}::uuid[],
      ${rows.map(({ replaced }) => replaced)}::boolean[]
    ) AS r (id, org_id, node_id, kind, key, value, observer, detail, observed_at, correlation_id, incident_id, replaced)`;
}

async function removeOld(tx: Tx, inserted: readonly NewObservation[]): Promise<void> {
  const places = new Map(inserted.map((one) => [placeOf(one.nodeId, one.kind, one.key ?? ""), one]));
  const all = [...places.values()];
  if (all.length === 0) return;
  await tx`
    DELETE FROM node_observations WHERE id IN (
      SELECT old.id FROM unnest(${all.map(({ nodeId }) => nodeId)}::uuid[], ${all.map(({ kind }) => kind)}::text[],
        ${all.map(({ key }) => key ?? "")}::text[]) AS place (node_id, kind, key),
      LATERAL (SELECT o.id FROM node_observations o
        WHERE o.node_id = place.node_id AND o.kind = place.kind AND o.key = place.key AND o.replaced_at IS NOT NULL
        ORDER BY o.observed_at DESC OFFSET ${KEPT_CHANGES - 1}) AS old)`;
}

function endedFindings(
  rows: readonly Row[],
  observations: readonly NewObservation[],
  complete: readonly AllFindings[],
): NewObservation[] {
  const present = new Set(observations.map(({ nodeId, kind, key }) => placeOf(nodeId, kind, key ?? "")));
  const at = new Map(complete.map(({ nodeId, observedAt }) => [nodeId, observedAt]));
  return rows.flatMap(({ node_id: nodeId, kind, key, value }): NewObservation[] => {
    const observedAt = at.get(nodeId);
    const over =
      observedAt && kind === "finding" && value === "present" && !present.has(placeOf(nodeId, kind, key));
    return over ? [{ nodeId, kind, key, value: "absent", observer: "agent", observedAt }] : [];
  });
}

const placeOf = (nodeId: string, kind: string, key: string) => `${nodeId} ${kind} ${key}`;
const textOf = (detail: NewObservation["detail"]) => (detail === undefined ? null : JSON.stringify(detail));
