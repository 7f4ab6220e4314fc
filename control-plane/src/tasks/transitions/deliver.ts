// Claims tasks for nodes, and renews the leases of what they hold. One statement serves many nodes at once and uses
// indexes only; `deliveryParameters` keeps the planner to that.
//
// Locks: rows that another statement has locked are skipped, so this one never waits.

import { LEASE_SECONDS } from "@holdfast/contracts/node/limits";
import type { Held } from "@holdfast/contracts/node/protocol";
import { ConstantSql, type Queryable, rowsOf } from "../../database/connect.ts";
import {
  byEvent,
  hasOutcome,
  isChangedBy,
  isCurrent,
  isDelivered,
  isRepeated,
  isWaiting,
  newLease,
  statusAfter,
} from "./sql.ts";

/** The lease of a held task is written again only when this much of it is used. */
const RENEW_AFTER_SECONDS = 30;

export type Asking = { nodeId: string; room: number; holding: readonly Held[] };

export type Delivered = {
  node_id: string;
  task_id: string;
  /** To be stopped; otherwise it is offered, and the fields below are set. */
  stop: boolean;
  generation: number;
  type: string;
  params: unknown;
  expires_at: Date;
  signature: string;
  sealed_secrets: Buffer | null;
  correlation_id: string;
  priority: number;
  revision: number;
};

const asked = rowsOf<Asking>({
  node_id: ["uuid", (one) => one.nodeId],
  room: ["integer", (one) => one.room],
  held: ["uuid[]", (one) => one.holding.map((task) => task.task_id)],
  generations: ["integer[]", (one) => one.holding.map((task) => task.generation)],
});

/** Another task `o` of the same order as `t` is with the node: one at a time. */
const orderIsBusy = new ConstantSql(`(
  SELECT true FROM tasks o
  WHERE o.node_id = t.node_id AND o.order_key = t.order_key AND ${isDelivered("o").text} LIMIT 1
) IS NOT NULL`);

/**
 * Returns what each polling node gets: tasks that were dispatched to it and did not reach it (the same delivery again),
 * then new tasks by priority and age, up to its room; and which of the tasks it holds it must stop. Renews the leases of
 * the current deliveries it holds. A node may occur in `asking` only once.
 */
export async function deliver(sql: Queryable, asking: readonly Asking[]): Promise<Delivered[]> {
  // Most nodes hold nothing; the statement is then half as long.
  const anyHeld = asking.some((one) => one.holding.length > 0);
  return sql<Delivered[]>`
    WITH asked AS MATERIALIZED (
      SELECT a.*, n.status FROM (${asked(asking)}) AS a
      JOIN nodes n ON n.id = a.node_id
      WHERE n.revoked_at IS NULL
    )${anyHeld ? renewHeld(sql) : sql``}, lost AS MATERIALIZED (
      SELECT a.node_id, t.id FROM asked a CROSS JOIN LATERAL (
        SELECT t.id FROM tasks t
        WHERE t.node_id = a.node_id AND ${claim.renews} AND t.id <> ALL (a.held)
          AND t.cancel_requested_at IS NULL AND t.expires_at > now()
        ORDER BY t.id LIMIT a.room
        FOR NO KEY UPDATE OF t SKIP LOCKED
      ) t
      WHERE a.room > 0 AND a.status IN ('active', 'draining')
    ), picked AS MATERIALIZED (
      SELECT t.id FROM asked a CROSS JOIN LATERAL (
        SELECT t.id FROM tasks t
        WHERE t.node_id = a.node_id AND ${claim.changes} AND t.expires_at > now() AND t.id <> ALL (a.held)
          AND (t.order_key IS NULL OR NOT ${orderIsBusy} AND (
            SELECT true FROM tasks o
            WHERE o.node_id = t.node_id AND o.order_key = t.order_key AND ${claim.wouldChangeOther} AND o.id < t.id LIMIT 1
          ) IS NULL)
        ORDER BY t.priority DESC, t.id
        LIMIT a.room - (SELECT count(*) FROM lost l WHERE l.node_id = a.node_id)
        FOR NO KEY UPDATE OF t SKIP LOCKED
      ) t
      WHERE a.room > 0 AND a.status = 'active'
    ), offered AS (
      UPDATE tasks t SET
        status = ${claim.status}, generation = t.generation + (${claim.changes})::integer, lease_until = ${newLease},
        dispatched_at = coalesce(t.dispatched_at, now()), revision = t.revision + (${claim.changes})::integer
      FROM (SELECT id FROM picked UNION ALL SELECT id FROM lost) AS o WHERE t.id = o.id
      RETURNING t.node_id, t.id, t.generation, t.type, t.params, t.expires_at, t.signature, t.correlation_id,
        t.priority, t.revision, t.sealed_secrets
    )
    SELECT o.node_id, o.id AS task_id, false AS stop, o.generation, o.type, o.params, o.expires_at, o.signature,
      o.correlation_id, o.priority, o.revision, o.sealed_secrets
    FROM offered o
    ${anyHeld ? toStop(sql) : sql``}`;
}

const claim = {
  changes: isWaiting(),
  renews: isDelivered(),
  wouldChangeOther: isWaiting("o"),
  status: statusAfter("claim"),
};

const hold = {
  changes: isChangedBy("hold"),
  renews: hasOutcome("hold", "renewed"),
  status: statusAfter("hold"),
  isRepeated: isRepeated("t", "h.generation"),
  isCurrent: isCurrent("t", "h.generation"),
  /** Null if the node has no such task. */
  outcome: byEvent({ event: "e.event", status: "t.status" }, ["hold", "hold_stale", "hold_repeated"], (outcome) =>
    typeof outcome === "object" ? "renewed" : outcome,
  ),
};

/** Compares the tasks that the nodes hold with the stored ones, and renews the leases of current deliveries. */
const renewHeld = (sql: Queryable) => sql`, held AS MATERIALIZED (
      SELECT a.node_id, h.task_id, h.generation, ${hold.outcome} AS outcome,
        ${hold.changes} OR t.generation < h.generation
          OR t.lease_until < now() + ${LEASE_SECONDS - RENEW_AFTER_SECONDS} * interval '1 second' AS due
      FROM asked a
      CROSS JOIN LATERAL unnest(a.held, a.generations) AS h (task_id, generation)
      LEFT JOIN tasks t ON t.id = h.task_id AND t.node_id = a.node_id
      CROSS JOIN LATERAL (SELECT CASE
        WHEN ${hold.isRepeated} THEN 'hold_repeated'
        WHEN ${hold.isCurrent} AND t.cancel_requested_at IS NULL
          AND (t.order_key IS NULL OR NOT (${hold.changes}) OR NOT ${orderIsBusy}) THEN 'hold'
        ELSE 'hold_stale' END AS event) AS e
    ), renewing AS MATERIALIZED (
      SELECT t.id, h.generation FROM held h JOIN tasks t ON t.id = h.task_id
      -- What another statement changed since is read again under the lock.
      WHERE h.outcome = 'renewed' AND h.due AND (${hold.changes} OR ${hold.renews}) AND t.generation <= h.generation
        AND t.cancel_requested_at IS NULL
      FOR NO KEY UPDATE OF t SKIP LOCKED
    ), renewed AS (
      UPDATE tasks t SET
        status = ${hold.status}, generation = r.generation, lease_until = ${newLease},
        dispatched_at = coalesce(t.dispatched_at, now()), revision = t.revision + (${hold.changes})::integer
      FROM renewing r WHERE t.id = r.id
    )`;

const toStop = (sql: Queryable) => sql`
    UNION ALL
    SELECT h.node_id, h.task_id, true, h.generation, '', NULL, now(), '', '', 0, 0, NULL FROM held h
    WHERE coalesce(h.outcome, 'asked_to_stop') = 'asked_to_stop'`;
