// Failures that are repeated, in the audit: one row for the first, summaries while it lasts, and one row when it is over. The
// state is in PostgreSQL, so that replicas agree. Every repetition is also a log line, with the same hash of its key.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import type { Queryable, Tx } from "../../database/connect.ts";
import { type AuditActor, type AuditTarget, dedupeKeyHash, type NewAuditEvent, recordAudit } from "../record.ts";
import { decideReport, type Report, type Series } from "./decide.ts";

/** Two of them are one failure if actor, app instance, credential, action and reason are the same. */
export type Failure = NewAuditEvent & {
  result: "denied" | "failed";
  reason: NonNullable<NewAuditEvent["reason"]>;
  /** How often it happened since it was last recorded here; one by default. */
  times?: number;
};

/** What works again: all failures of this actor with this action, or only those with this credential. */
export type Recovery = {
  orgId: string | null;
  by: AuditActor;
  action: string;
  credentialId?: string;
  target: AuditTarget;
  correlationId: string;
};

export type FailureAudit = {
  failed(tx: Tx, failure: Failure): Promise<void>;
  /** Writes nothing if nothing had failed. Returns how many failures are over. */
  recovered(tx: Tx, recovery: Recovery): Promise<number>;
};

type Row = {
  id: string;
  first_seen_at: Date;
  last_seen_at: Date;
  reported_at: Date;
  reports: number;
  count: number;
  now: Date;
};

const columns = (db: Queryable) =>
  db`id, first_seen_at, last_seen_at, reported_at, reports, count::float8 AS count, now() AS now`;

export function openFailureAudit(log: Log, windowSeconds: () => number): FailureAudit {
  return {
    async failed(tx, failure) {
      const { report, row } = await count(tx, failure, windowSeconds() * 1000);
      const seen = seenOf(row);
      log.info({ dedupe_key_hash: dedupeKeyHash(failure), action: failure.action, ...seen }, "repeated failure");
      if (report === "count") return;
      const { times: _, ...event } = failure;
      const summary = report === "summary" ? { summary: true } : {};
      await recordAudit(tx, log, { ...event, details: { ...event.details, ...summary, ...seen } });
    },
    async recovered(tx, { credentialId, ...recovery }) {
      const { orgId, by, action, target, correlationId } = recovery;
      const only = credentialId === undefined ? tx`` : tx`AND credential_id = ${credentialId}`;
      const rows = await tx<(Row & { reason: string })[]>`
        DELETE FROM audit_failures
        WHERE action = ${action} AND actor_type = ${by.actor_type} AND actor_id IS NOT DISTINCT FROM ${by.actor_id}
          AND org_id IS NOT DISTINCT FROM ${orgId} ${only}
        RETURNING reason, ${columns(tx)}`;
      for (const row of rows) {
        await recordAudit(tx, log, {
          ...{ orgId, by, action, target, correlationId, result: "allowed" },
          details: { recovered: true, reason: row.reason, ...seenOf(row) },
        });
      }
      return rows.length;
    },
  };
}

const seenOf = (row: Row) => ({
  first_seen_at: row.first_seen_at.toISOString(),
  last_seen_at: row.last_seen_at.toISOString(),
  count: row.count,
});

/** Two replicas with the same failure: the second waits for the first, and finds its row. */
async function count(tx: Tx, failure: Failure, windowMs: number): Promise<{ report: Report; row: Row }> {
  const { orgId, by, action, reason, target, times = 1 } = failure;
  const [made] = await tx<Row[]>`
    INSERT INTO audit_failures (id, org_id, actor_type, actor_id, app_instance_id, credential_id, action, reason, count)
    VALUES (${uuidv7()}, ${target.orgId ?? orgId}, ${by.actor_type}, ${by.actor_id}, ${failure.appInstanceId ?? null},
      ${failure.credentialId ?? null}, ${action}, ${reason}, ${times})
    ON CONFLICT DO NOTHING RETURNING ${columns(tx)}`;
  if (made) return { report: "first", row: made };
  const [known] = await tx<Row[]>`
    SELECT ${columns(tx)} FROM audit_failures
    WHERE action = ${action} AND actor_type = ${by.actor_type} AND reason = ${reason}
      AND (actor_id, app_instance_id, credential_id, org_id) IS NOT DISTINCT FROM
        (${by.actor_id}::uuid, ${failure.appInstanceId ?? null}::uuid, ${failure.credentialId ?? null}::text,
         ${target.orgId ?? orgId}::uuid)
    FOR UPDATE`;
  // It recovered in between: this is the first of the next series.
  if (!known) return count(tx, failure, windowMs);
  const report = decideReport(seriesOf(known), known.now.getTime(), windowMs);
  const first = report === "first";
  const [row] = await tx<Row[]>`
    UPDATE audit_failures SET last_seen_at = now(),
      first_seen_at = CASE WHEN ${first} THEN now() ELSE first_seen_at END,
      count = CASE WHEN ${first} THEN ${times} ELSE count + ${times} END,
      reports = CASE WHEN ${first} THEN 1 WHEN ${report === "summary"} THEN reports + 1 ELSE reports END,
      reported_at = CASE WHEN ${report === "count"} THEN reported_at ELSE now() END
    WHERE id = ${known.id} RETURNING ${columns(tx)}`;
  return { report, row: row ?? known };
}

const seriesOf = ({ last_seen_at, reported_at, reports }: Row): Series => ({
  lastSeenAt: last_seen_at.getTime(),
  reportedAt: reported_at.getTime(),
  reports,
});
