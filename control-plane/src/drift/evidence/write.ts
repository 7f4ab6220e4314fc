// The one writer of evidence. Whoever observes something hands it over here; a change makes the node due for
// classification in the same transaction. Observations are repeated or replaced soon, so commits do not wait for the disk.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { Sql, Tx } from "../../database/connect.ts";
import { linkEpisodes } from "../incidents/episodes.ts";
import { type Newest, type Plan, planWrites } from "./merge.ts";
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
    /** It holds until it changes: stored only when its value or detail differ from the newest. */
    steady?: boolean;
  };
}[Kind];

/** Of each kind and key of a node; the newest is one of them. */
const KEPT_CHANGES = 20;
/** Of all kinds and keys: a node that reports ever new codes only displaces its own evidence. */
const KEPT_OF_NODE = 1_000;

/** Each has an id of its own. Others are observed again and again, and lead to where they began. */
const RECORD: Kind = "diagnostic";

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

/**
 * Later than all that was recorded about the node, also in milliseconds, by which evidence is compared. Nobody else records
 * anything until the transaction ends.
 */
export async function timeAfterOthers(tx: Tx, nodeId: string): Promise<Date> {
  await tx`SELECT FROM node_verdicts WHERE node_id = ${nodeId} FOR UPDATE`;
  const [row] = await tx<{ now: Date }[]>`SELECT clock_timestamp() AS now FROM pg_sleep(0.002)`;
  if (!row) throw new Error("a function that returns one row returned none");
  return row.now;
}

type Locked = { node_id: string; org_id: string; incident_id: string | null; now: Date };
type Row = {
  id: string;
  node_id: string;
  kind: string;
  key: string;
  value: string;
  observed_at: Date;
  seen_at: Date;
  detail: string | null;
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
    RETURNING node_id, org_id, incident_id, clock_timestamp() AS now`;
  const nodes = new Map(locked.map((one) => [one.node_id, one]));
  const rows = await tx<Row[]>`
    SELECT id, node_id, kind, key, value, observed_at, seen_at, detail::text FROM node_observations
    WHERE node_id = ANY(${[...nodes.keys()]}::uuid[]) AND replaced_at IS NULL`;
  const given = [...observations, ...endedFindings(rows, observations, complete)].flatMap((one) => {
    const node = nodes.get(one.nodeId);
    return node ? [notInFuture(one, node.now)] : [];
  });
  const plan = planWrites(given.map(toGiven), rows.map(toNewest), uuidv7);
  const changed = [...new Set(plan.used.map(({ nodeId }) => nodeId))].sort();
  if (changed.length === 0) return [];

  const { replace, repeat } = plan;
  if (replace.length > 0) {
    await tx`UPDATE node_observations SET replaced_at = now() WHERE id = ANY(${replace}::uuid[])`;
  }
  if (repeat.length > 0) {
    await tx`
      UPDATE node_observations o SET seen_at = r.seen_at, detail = r.detail::json,
        correlation_id = CASE WHEN o.kind = ${RECORD} THEN coalesce(r.correlation_id, o.correlation_id)
                              ELSE coalesce(o.correlation_id, r.correlation_id) END
      FROM unnest(${repeat.map(({ id }) => id)}::uuid[],
        ${repeat.map(({ seenAt }) => new Date(seenAt))}::timestamptz[],
        ${repeat.map(({ observation }) => textOf(observation.detail))}::text[],
        ${repeat.map(({ observation }) => observation.correlationId ?? null)}::text[])
        AS r (id, seen_at, detail, correlation_id)
      WHERE o.id = r.id`;
  }
  await append(tx, plan.append, nodes);
  await tx`UPDATE node_verdicts SET review_at = now() WHERE node_id = ANY(${changed}::uuid[])`;
  await linkEpisodes(tx, given);
  await removeOld(
    tx,
    plan.append.map(({ observation }) => observation),
  );
  if (plan.append.length > 0) await removeSurplus(tx, changed);
  return changed;
}

/** A process whose clock was ahead would otherwise outdate all that follows, until its time has come. */
function notInFuture(observation: NewObservation, now: Date): NewObservation {
  return observation.observedAt > now ? { ...observation, observedAt: now } : observation;
}

const toGiven = (observation: NewObservation) => ({
  place: placeOf(observation.nodeId, observation.kind, observation.key ?? ""),
  value: observation.value,
  observedAt: observation.observedAt.getTime(),
  ...{ steady: observation.steady, detail: textOf(observation.detail) },
  observation,
});

const toNewest = ({ id, node_id, kind, key, value, observed_at, seen_at, detail }: Row): Newest => ({
  ...{ id, place: placeOf(node_id, kind, key), value, detail },
  ...{ observedAt: observed_at.getTime(), seenAt: seen_at.getTime() },
});

/** What is handed in a second time is already there. */
async function append(
  tx: Tx,
  rows: Plan<NewObservation>["append"],
  nodes: ReadonlyMap<string, Locked>,
): Promise<void> {
  if (rows.length === 0) return;
  const column = <Value>(read: (observation: NewObservation) => Value): Value[] =>
    rows.map(({ observation }) => read(observation));
  await tx`
    INSERT INTO node_observations
      (id, org_id, node_id, kind, key, value, observer, detail, observed_at, seen_at, correlation_id, incident_id,
       replaced_at)
    SELECT id, org_id, node_id, kind, key, value, observer, detail::json, observed_at, seen_at, correlation_id,
           incident_id, CASE WHEN replaced THEN now() END
    FROM unnest(
      ${rows.map(({ id }) => id)}::uuid[], ${column(({ nodeId }) => nodes.get(nodeId)?.org_id ?? null)}::uuid[],
      ${column(({ nodeId }) => nodeId)}::uuid[], ${column(({ kind }) => kind)}::text[],
      ${column(({ key }) => key ?? "")}::text[], ${column(({ value }) => value)}::text[],
      ${column(({ observer }) => observer)}::text[], ${column(({ detail }) => textOf(detail))}::text[],
      ${column(({ observedAt }) => observedAt)}::timestamptz[],
      ${rows.map(({ seenAt }) => new Date(seenAt))}::timestamptz[],
      ${column(({ correlationId }) => correlationId ?? null)}::text[],
      ${column(({ nodeId }) => nodes.get(nodeId)?.incident_id ?? null)}::uuid[],
      ${rows.map(({ replaced }) => replaced)}::boolean[]
    ) AS r (id, org_id, node_id, kind, key, value, observer, detail, observed_at, seen_at, correlation_id, incident_id,
            replaced)
    ON CONFLICT DO NOTHING`;
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

async function removeSurplus(tx: Tx, nodeIds: readonly string[]): Promise<void> {
  await tx`
    DELETE FROM node_observations WHERE id IN (
      SELECT old.id FROM unnest(${nodeIds as string[]}::uuid[]) AS node (id),
      LATERAL (SELECT o.id FROM node_observations o WHERE o.node_id = node.id
        ORDER BY o.id DESC OFFSET ${KEPT_OF_NODE}) AS old)`;
}

const placeOf = (nodeId: string, kind: string, key: string) => `${nodeId} ${kind} ${key}`;
const textOf = (detail: NewObservation["detail"]) => (detail === undefined ? null : JSON.stringify(detail));
