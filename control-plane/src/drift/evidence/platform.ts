// Evidence about the platform itself: whether it serves nodes, and which CA it signs with. It is stored once and counts for
// every node that it concerns.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { Queryable, Sql } from "../../database/connect.ts";
import type { Observation, Values } from "./observation.ts";

type PlatformKind = "control_plane" | "ca_trust" | "signing_ca";

/** Known to be not known, which is no evidence. */
const UNKNOWN = "unknown";

export type PlatformObservation = {
  [K in PlatformKind]: {
    kind: K;
    value: Values[K] | typeof UNKNOWN;
    observedAt: Date;
    seenAt: Date;
    detail?: Readonly<Record<string, string>>;
  };
}[PlatformKind];

export type PlatformRow = {
  kind: PlatformKind;
  value: string;
  detail: Record<string, string> | null;
  observed_at: Date;
  seen_at: Date;
};

const inOrder: { [K in PlatformKind]: Values[K] } = {
  control_plane: "ready",
  ca_trust: "match",
  signing_ca: "unchanged",
};

/** Of each kind. */
const KEPT_CHANGES = 20;

/** That all is well, or not known, is no news after the same. */
const isQuiet = (kind: PlatformKind, value: string | undefined) =>
  value === undefined || value === inOrder[kind] || value === UNKNOWN;

/** In order. Returns whether anything changed for nodes. */
export async function recordPlatform(system: Sql, given: readonly PlatformObservation[]): Promise<boolean> {
  return system.begin(async (tx) => {
    let changed = false;
    for (const { kind, value, observedAt, seenAt, detail } of given) {
      const text = detail === undefined ? null : JSON.stringify(detail);
      const [same] = await tx`
        UPDATE platform_observations SET seen_at = greatest(seen_at, ${seenAt}), detail = ${text}::text::json
        WHERE kind = ${kind} AND replaced_at IS NULL AND value = ${value} RETURNING id`;
      if (same) continue;
      const [before] = await tx<{ value: string }[]>`
        UPDATE platform_observations SET replaced_at = now() WHERE kind = ${kind} AND replaced_at IS NULL
        RETURNING value`;
      changed ||= !isQuiet(kind, before?.value) || !isQuiet(kind, value);
      // Of two processes that see it first, one is enough.
      await tx`
        INSERT INTO platform_observations (id, kind, value, detail, observed_at, seen_at)
        VALUES (${uuidv7()}, ${kind}, ${value}, ${text}::text::json, ${observedAt}, ${seenAt}) ON CONFLICT DO NOTHING`;
      await tx`
        DELETE FROM platform_observations WHERE id IN (
          SELECT id FROM platform_observations WHERE kind = ${kind} AND replaced_at IS NOT NULL
          ORDER BY observed_at DESC OFFSET ${KEPT_CHANGES - 1})`;
    }
    return changed;
  });
}

/** The newest of each kind, and what came before it; the newest first. */
export function readPlatform(db: Queryable): Promise<PlatformRow[]> {
  return db<PlatformRow[]>`
    SELECT kind, value, detail, observed_at, seen_at
    FROM unnest(ARRAY['control_plane', 'ca_trust', 'signing_ca']) AS every (name),
    LATERAL (SELECT * FROM platform_observations WHERE kind = name ORDER BY observed_at DESC, id DESC LIMIT 2) AS o`;
}

/** What of it concerns a node. */
export function platformOf(rows: readonly PlatformRow[], heartbeatAt: Date | null): Observation[] {
  const newest = (kind: PlatformKind) => rows.find((row) => row.kind === kind);
  const outage = outageOf(rows);
  return [
    ...(outage && isSilencedBy(outage, heartbeatAt) ? [toObservation(outage)] : []),
    ...[newest("ca_trust"), newest("signing_ca")].flatMap((row) =>
      row && row.value !== UNKNOWN ? [toObservation(row)] : [],
    ),
  ];
}

/** The outage that goes on, or the last one. `seen_at` is its end then. */
export function outageOf(rows: readonly PlatformRow[]): (PlatformRow & { isOver: boolean }) | undefined {
  const [now, before] = rows.filter(({ kind }) => kind === "control_plane");
  if (now?.value === "not_ready") return { ...now, isOver: false };
  return now && before?.value === "not_ready" ? { ...before, seen_at: now.observed_at, isOver: true } : undefined;
}

/** A node that stopped reporting before the outage did so for another reason. */
const REPORTED_WITHIN_MS = 120_000;

function isSilencedBy(outage: PlatformRow & { isOver: boolean }, heartbeatAt: Date | null): boolean {
  if (!heartbeatAt || outage.observed_at.getTime() - heartbeatAt.getTime() > REPORTED_WITHIN_MS) return false;
  return !outage.isOver || heartbeatAt < outage.seen_at;
}

function toObservation({ kind, value, detail, observed_at, seen_at }: PlatformRow): Observation {
  const times = { observedAt: seen_at.getTime(), firstAt: observed_at.getTime(), receivedAt: seen_at.getTime() };
  return {
    ...{ id: `${kind}:platform`, kind, value, observer: "control_plane", detail: detail ?? undefined, ...times },
  } as Observation;
}
