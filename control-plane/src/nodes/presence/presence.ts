// Stores what is heard of agents: heartbeats, diagnostic records, and that a connection has ended. All are repeated soon,
// so their commits do not wait for the disk.

import type { BodyOf } from "@holdfast/contracts/endpoint";
import type { sendDiagnostics, sendHeartbeat } from "@holdfast/contracts/node/endpoints";
import type { DiagnosticRecord } from "@holdfast/contracts/node/protocol";
import type { Log } from "@holdfast/service/log";
import { isUnavailable, type Queryable, type Sql, type Tx } from "../../database/connect.ts";
import { reportedAttributes } from "../../drift/common-cause/attributes.ts";
import { createBatches } from "../../mechanisms/batches.ts";
import { type Review, reviewHolders } from "../holders/review.ts";

const DIAGNOSTICS_KEPT = 200;

type NodeRef = { id: string; orgId: string };
type HeartbeatReport = Omit<BodyOf<typeof sendHeartbeat>, "holding">;
type ReceivedHeartbeat = {
  node: NodeRef & { serial: string; ingress: string | null };
  from: { instanceId: string; bootId: string; correlationId: string; streamId?: string | undefined };
  report: HeartbeatReport;
  /** By the clock of this process, which the node's is compared with. */
  at: Date;
};

/** `number`: undefined if it does not say what it was sent after; `review`: of one that does not continue the one before. */
export type RecordedHeartbeat = { number: number | undefined; review: Review | undefined };

export type Presence = {
  /** Resolves when it is stored. */
  record(heartbeat: ReceivedHeartbeat): Promise<RecordedHeartbeat>;
  /** The connection of the last heartbeat has ended. Never rejects: missing heartbeats show it later. */
  disconnected(lost: Disconnection): Promise<void>;
};

export type Disconnection = {
  nodeId: string;
  instanceId: string;
  /** Undefined: the agent polled. */
  streamId: string | undefined;
  why: string;
};

/** A fleet's heartbeats arrive evenly, so without this pause each would be a statement of its own. */
const GATHER_MS = 50;
const MOST_IN_ONE = 256;

export function createPresence(system: Sql, log: Log): Presence {
  /** What could not be reviewed is reviewed with the next one. */
  const review = async (stored: readonly StoredRow[]) => {
    const due = stored.flatMap(({ node_id, due }) => (due ? [node_id] : []));
    if (due.length === 0) return undefined;
    return reviewHolders(system, due).catch((error: unknown) => {
      log.warn({ err: error, node_ids: due.slice(0, 8) }, "could not review who uses a node's identity");
      return undefined;
    });
  };

  const heartbeats = createBatches<ReceivedHeartbeat, RecordedHeartbeat>({
    most: MOST_IN_ONE,
    atOnce: 1,
    restMs: GATHER_MS,
    keyOf: ({ node }) => node.id,
    concernsAll: isUnavailable,
    run: async (batch) => {
      const stored = await recordHeartbeats(system, batch);
      const reviews = await review(stored);
      const numbers = new Map(stored.map(({ node_id, number }) => [node_id, Number(number)]));
      return batch.map(({ node, report }) => {
        const number = report.after === undefined ? undefined : numbers.get(node.id);
        return { number, review: reviews?.get(node.id) };
      });
    },
  });
  const disconnections = createBatches<Disconnection, undefined>({
    most: MOST_IN_ONE,
    atOnce: 1,
    restMs: GATHER_MS,
    keyOf: ({ nodeId }) => nodeId,
    concernsAll: () => true,
    run: async (batch) => {
      await recordDisconnections(system, batch);
      return batch.map(() => undefined);
    },
  });
  return {
    record: (heartbeat) => heartbeats.add(heartbeat),
    disconnected: (lost) =>
      disconnections.add(lost).catch((error: unknown) => {
        log.debug({ err: error, node_id: lost.nodeId }, "could not record that a node has disconnected");
      }),
  };
}

/** Only if no heartbeat came over another connection since. */
async function recordDisconnections(system: Sql, batch: readonly Disconnection[]): Promise<void> {
  const sorted = batch.toSorted((a, b) => (a.nodeId < b.nodeId ? -1 : 1));
  await system`
    UPDATE node_presence p SET disconnected_at = now(), disconnected_why = lost.why
    FROM unnest(
      ${sorted.map(({ nodeId }) => nodeId)}::uuid[], ${sorted.map(({ instanceId }) => instanceId)}::uuid[],
      ${sorted.map(({ streamId }) => streamId ?? null)}::uuid[], ${sorted.map(({ why }) => why)}::text[]
    ) AS lost (node_id, instance_id, stream_id, why)
    WHERE p.node_id = lost.node_id AND p.instance_id = lost.instance_id
      AND p.stream_id IS NOT DISTINCT FROM lost.stream_id AND p.disconnected_at IS NULL
      AND set_config('synchronous_commit', 'off', true) = 'off'`;
}

type StoredRow = { node_id: string; number: string; due: boolean };

/**
 * The setting holds for the statement's own transaction, and is part of it: no round trip of its own. In order of the
 * ids, so that no two replicas wait for each other. Received at the database's time, which all replicas share. A heartbeat
 * that does not continue the last one is kept to be reviewed, with what the last one was.
 */
function recordHeartbeats(system: Sql, batch: readonly ReceivedHeartbeat[]): Promise<StoredRow[]> {
  const sorted = batch.toSorted((a, b) => (a.node.id < b.node.id ? -1 : 1));
  return system<StoredRow[]>`
    INSERT INTO node_presence AS p
      (node_id, org_id, heartbeat_at, instance_id, boot_id, clock_skew_ms, heartbeat, correlation_id, stream_id, attributes,
       after_number, number)
    SELECT node_id, org_id, now(), instance_id, boot_id, clock_skew_ms, heartbeat::json, correlation_id, stream_id,
           attributes::json, after_number, CASE WHEN after_number IS NULL THEN 0 ELSE 1 END
    FROM unnest(
      ${sorted.map(({ node }) => node.id)}::uuid[], ${sorted.map(({ node }) => node.orgId)}::uuid[],
      ${sorted.map(({ from }) => from.instanceId)}::uuid[],
      ${sorted.map(({ from }) => from.bootId)}::text[],
      ${sorted.map(({ report, at }) => clockSkewMs(report.sent_at, at))}::integer[], ${sorted.map(textOf)}::text[],
      ${sorted.map(({ from }) => from.correlationId)}::text[],
      ${sorted.map(({ from }) => from.streamId ?? null)}::uuid[],
      ${sorted.map(({ node, report }) => JSON.stringify(reportedAttributes(report, node.ingress)))}::text[],
      ${sorted.map(({ report }) => report.after ?? null)}::bigint[]
    ) AS received (node_id, org_id, instance_id, boot_id, clock_skew_ms, heartbeat, correlation_id, stream_id, attributes,
                   after_number)
    WHERE set_config('synchronous_commit', 'off', true) = 'off'
    ON CONFLICT (node_id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, instance_id = excluded.instance_id,
      boot_id = excluded.boot_id, clock_skew_ms = excluded.clock_skew_ms, heartbeat = excluded.heartbeat,
      correlation_id = excluded.correlation_id, stream_id = excluded.stream_id, disconnected_at = NULL,
      disconnected_why = NULL, attributes = excluded.attributes, number = p.number + excluded.number,
      after_number = CASE WHEN excluded.after_number IS NULL AND p.instance_id = excluded.instance_id
        THEN p.after_number ELSE excluded.after_number END,
      unreviewed = CASE WHEN excluded.after_number IS NULL
          OR (p.instance_id = excluded.instance_id AND p.number = excluded.after_number
              AND p.unreviewed IS NULL)
        THEN p.unreviewed
        ELSE ${contactOf(system)} END
    RETURNING node_id, number, unreviewed IS NOT NULL AND after_number IS NOT NULL AS due`;
}

/** The form of `Contact`; of too many that nobody could review, the first ones are forgotten. */
function contactOf(system: Sql) {
  const machine = (row: "p" | "excluded") => {
    const of = row === "p" ? system`p` : system`excluded`;
    return system`
      'instanceId', ${of}.instance_id, 'bootId', ${of}.boot_id,
      'serial', ${of}.heartbeat->'certificate'->>'serial', 'address', ${of}.heartbeat->'setup'->>'source_address',
      'hostname', ${of}.heartbeat->'facts'->>'hostname', 'startedAt', ${of}.heartbeat->>'started_at',
      'at', round(extract(epoch FROM ${of}.heartbeat_at) * 1000)`;
  };
  return system`
    CASE WHEN jsonb_array_length(p.unreviewed) >= ${MOST_UNREVIEWED} THEN p.unreviewed - 0
         ELSE coalesce(p.unreviewed, '[]') END
    || jsonb_build_array(jsonb_build_object(${machine("excluded")},
      'number', p.number + 1, 'after', excluded.after_number,
      'previous', jsonb_build_object(${machine("p")}, 'number', p.number, 'after', p.after_number,
        'disconnected', p.disconnected_at IS NOT NULL)))`;
}

const MOST_UNREVIEWED = 16;

/** The serial is that of the certificate presented with the request, not what the heartbeat claims. */
function textOf({ node, report: { after: _, ...report } }: ReceivedHeartbeat): string {
  return JSON.stringify({ ...report, certificate: { ...report.certificate, serial: node.serial } });
}

const MOST_SKEW_MS = 2_147_483_647;

/** Positive: the node's clock is ahead. Includes the network latency, which is far below the tolerance. */
function clockSkewMs(sentAt: string, now: Date): number {
  const skew = new Date(sentAt).getTime() - now.getTime();
  return Math.max(-MOST_SKEW_MS, Math.min(MOST_SKEW_MS, Math.round(skew)));
}

/**
 * Returns the newest number of this report, and the records that are new, in order: a restarted agent sends its records again. An
 * existing number is overwritten, because an agent that lost its state starts counting again.
 */
export async function recordDiagnostics(
  system: Sql,
  node: NodeRef,
  { records }: BodyOf<typeof sendDiagnostics>,
): Promise<{ seq: number; fresh: DiagnosticRecord[] }> {
  const rows = new Map(records.map((record) => [record.seq, record]));
  const store = async (tx: Tx) => {
    const stored = await tx<{ seq: string; fresh: boolean }[]>`
      INSERT INTO node_diagnostics (org_id, node_id, seq, record)
      SELECT ${node.orgId}, ${node.id}, seq, record
      FROM unnest(${[...rows.keys()]}::bigint[], ${[...rows.values()].map((one) => JSON.stringify(one))}::text[]::json[])
        AS reported (seq, record)
      ON CONFLICT (node_id, seq) DO UPDATE SET record = excluded.record, received_at = now()
      RETURNING seq, xmax = 0 AS fresh`;
    await tx`
      DELETE FROM node_diagnostics WHERE node_id = ${node.id} AND seq IN (
        SELECT seq FROM node_diagnostics WHERE node_id = ${node.id}
        ORDER BY received_at DESC, seq DESC OFFSET ${DIAGNOSTICS_KEPT})`;
    const isNew = new Set(stored.flatMap(({ seq, fresh }) => (fresh ? Number(seq) : [])));
    return [...rows.values()].filter(({ seq }) => isNew.has(seq)).sort((a, b) => a.seq - b.seq);
  };
  const fresh = await system.begin(store, { settings: { synchronous_commit: "off" } });
  return { seq: Math.max(...rows.keys()), fresh };
}

export async function selectDiagnostics(db: Queryable, nodeId: string): Promise<DiagnosticRecord[]> {
  const rows = await db<{ record: DiagnosticRecord }[]>`
    SELECT record FROM node_diagnostics WHERE node_id = ${nodeId} ORDER BY received_at DESC, seq DESC`;
  return rows.map(({ record }) => record);
}
