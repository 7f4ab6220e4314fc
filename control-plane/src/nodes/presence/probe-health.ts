// Probes the host of every online node, once per interval. Runs in the api, which signs tasks, and in every replica: if
// several find the same node due, one claims it. Each node has its own offset within the interval, derived from its id,
// so that the probes of a large fleet are spread evenly.

import { ApiError } from "@holdfast/contracts/errors";
import { CLOCK_TOLERANCE_SECONDS } from "@holdfast/contracts/node/limits";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { recordAudit, systemActor } from "../../audit/record.ts";
import type { Fragment, Queryable, Sql, Tx } from "../../database/connect.ts";
import type { TaskEngine } from "../../tasks/engine.ts";

export type ProbeRules = { intervalSeconds: number; staleAfterSeconds: number };
type Turn = ProbeRules & { now: Date; correlationId: string };

const TYPE = "diag.health_probe";
/** Lower than all tasks that somebody waits for. */
const PRIORITY = 0;
/** A late result is useless: the next probe follows anyway. */
const EXPIRES_SECONDS = 60;
/** Per node; older ones are removed when a new one is created. */
const KEPT = 3;
/** After downtime of the api all nodes are due: they are still probed a few at a time. */
const MOST_IN_A_TURN = 250;
const AUDIT_EVERY = "1 day";
const BY = systemActor("holdfast");

/** Returns how many nodes were probed. */
export async function probeHealth(
  system: Sql,
  engine: Pick<TaskEngine, "enqueue" | "enqueued">,
  options: ProbeRules & { log: Log; now?: Date },
): Promise<number> {
  const { log, now = new Date(), ...rules } = options;
  const turn: Turn = { ...rules, now, correlationId: uuidv7() };
  let probed = 0;
  for (const nodeId of await claimDue(system, turn)) {
    try {
      await ask(system, engine, nodeId, turn);
      probed += 1;
    } catch (error) {
      // The node takes no tasks any more; it is due again in the next interval.
      if (!(error instanceof ApiError)) log.warn({ err: error, node_id: nodeId }, "could not probe a node");
    }
  }
  await summarise(system, log, turn);
  return probed;
}

/**
 * Nodes that are due, and whose last probe has ended. A claim stores the time of the request: a second replica sees it and
 * skips the node. A claim without a probe costs one observation.
 */
async function claimDue(system: Sql, { now, staleAfterSeconds, intervalSeconds }: Turn): Promise<string[]> {
  const stale = new Date(now.getTime() - staleAfterSeconds * 1000);
  // Times beyond this were written by a clock that was wrong: they neither prove that a node is online nor postpone its probe.
  const future = new Date(now.getTime() + CLOCK_TOLERANCE_SECONDS * 1000);
  const due = (nodeId: Fragment) => dueBefore(system, nodeId, { now, intervalSeconds });
  const rows = await system<{ node_id: string }[]>`
    WITH due AS MATERIALIZED (
      SELECT n.id, n.org_id
      FROM nodes n
      JOIN node_presence p ON p.node_id = n.id
      LEFT JOIN node_probes b ON b.node_id = n.id
      WHERE n.status = 'active' AND n.revoked_at IS NULL AND p.heartbeat_at BETWEEN ${stale} AND ${future}
        AND (b.asked_at IS NULL OR b.asked_at < ${due(system`n.id`)} OR b.asked_at > ${future})
        AND NOT EXISTS (SELECT FROM tasks t WHERE t.id = b.task_ids[1] AND t.finished_at IS NULL)
      ORDER BY b.asked_at NULLS FIRST, n.id LIMIT ${MOST_IN_A_TURN}
    )
    INSERT INTO node_probes AS b (node_id, org_id, asked_at)
    SELECT id, org_id, ${now} FROM due ORDER BY id
    ON CONFLICT (node_id) DO UPDATE SET asked_at = excluded.asked_at
      WHERE b.asked_at < ${due(system`b.node_id`)} OR b.asked_at > ${future}
    RETURNING b.node_id`;
  return rows.map((row) => row.node_id);
}

/**
 * A node that was last probed before this time is due: half an interval before its most recent offset. A node that was
 * probed shortly before its offset, as a new node may be, waits for the next one.
 */
const dueBefore = (sql: Queryable, nodeId: Fragment, of: { now: Date; intervalSeconds: number }) => {
  const { now, intervalSeconds: interval } = of;
  const moment = sql`abs(hashtextextended(${nodeId}::text, 0) % ${interval}::bigint)`;
  const rounds = sql`floor((${now.getTime() / 1000}::float8 - ${moment}) / ${interval}::float8)`;
  return sql`to_timestamp((${rounds} - 0.5) * ${interval}::float8 + ${moment})`;
};

async function ask(
  system: Sql,
  engine: Pick<TaskEngine, "enqueue" | "enqueued">,
  nodeId: string,
  { now, correlationId }: Turn,
): Promise<void> {
  const wanted = { nodeId, type: TYPE, params: {}, priority: PRIORITY, expiresInSeconds: EXPIRES_SECONDS };
  const enqueue = async (tx: Tx) => {
    const made = await engine.enqueue(tx, { ...wanted, by: BY, correlationId }, { routine: true });
    // Both see the list as it was before: entries beyond the limit are removed.
    await tx`
      WITH noted AS (
        UPDATE node_probes SET task_ids = (ARRAY[${made.id}::uuid] || task_ids)[1:${KEPT}],
          unaudited = unaudited + 1, first_at = coalesce(first_at, ${now})
        WHERE node_id = ${nodeId}
      )
      DELETE FROM tasks t USING node_probes b
      WHERE b.node_id = ${nodeId} AND t.id = ANY (b.task_ids[${KEPT}:]) AND t.finished_at IS NOT NULL`;
    return made;
  };
  engine.enqueued(await system.begin(enqueue, { settings: { synchronous_commit: "off" } }));
}

type Unaudited = { node_id: string; org_id: string; name: string; count: number; first_at: Date; asked_at: Date };

/** One audit event for the first probe of a node, and then one per day for all since. */
async function summarise(system: Sql, log: Log, { now, correlationId }: Turn): Promise<void> {
  await system.begin(async (tx) => {
    const rows = await tx<Unaudited[]>`
      SELECT b.node_id, b.org_id, n.name, b.unaudited AS count, b.first_at, b.asked_at
      FROM node_probes b JOIN nodes n ON n.id = b.node_id
      WHERE b.unaudited > 0 AND (b.audited_at IS NULL OR b.audited_at <= ${now}::timestamptz - ${AUDIT_EVERY}::interval)
      ORDER BY b.node_id LIMIT ${MOST_IN_A_TURN} FOR UPDATE OF b SKIP LOCKED`;
    for (const { node_id, org_id, name, count, first_at, asked_at } of rows) {
      await recordAudit(tx, log, {
        orgId: org_id,
        by: BY,
        action: "node.probe",
        target: { type: "node", id: node_id, name },
        result: "allowed",
        correlationId,
        details: {
          type: TYPE,
          count,
          first_seen_at: first_at.toISOString(),
          last_seen_at: asked_at.toISOString(),
        },
      });
    }
    await tx`
      UPDATE node_probes SET unaudited = 0, first_at = NULL, audited_at = ${now}
      WHERE node_id = ANY (${rows.map((row) => row.node_id)}::uuid[])`;
  });
}
