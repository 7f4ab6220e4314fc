// Runs what a recovery lacks: a task that does nothing, signed and delivered as any other, for each node whose cause is gone
// and that has completed none since. In the api, which signs tasks, and in every replica: an incident is locked while its
// task is created. A task that ends without a result is repeated, with growing pauses and a limit; why it got none is
// found out as for any other task.

import { ApiError } from "@holdfast/contracts/errors";
import type { Log } from "@holdfast/service/log";
import { systemActor } from "../../audit/record.ts";
import type { Queryable, Sql, Tx } from "../../database/connect.ts";
import type { TaskEngine } from "../../tasks/engine.ts";

const TYPE = "node.noop";
/** Above people's tasks: a node that recovers may have a long queue. */
const PRIORITY = 8;
const BY = systemActor("recovery check");
/** After one repair. Health probes and other tasks that complete count as well. */
export const MOST_ATTEMPTS = 5;
const FIRST_PAUSE_SECONDS = 30;
/** A fleet that comes back is checked a few nodes at a time. */
const MOST_IN_A_TURN = 250;

type Engine = Pick<TaskEngine, "enqueue" | "enqueued">;
type Checked = {
  /** Nodes that completed a task since they were classified. */
  due: string[];
  enqueued: number;
};

export async function runRecoveryChecks(system: Sql, engine: Engine, log: Log): Promise<Checked> {
  const due = await noticeCompleted(system);
  let enqueued = 0;
  for (const incidentId of await selectLacking(system)) {
    try {
      if (await enqueueCheck(system, engine, incidentId)) enqueued += 1;
    } catch (error) {
      // It was drained or quarantined meanwhile.
      if (error instanceof ApiError && error.code === "node_not_active") continue;
      log.warn({ err: error, incident_id: incidentId }, "could not check a recovery");
    }
  }
  return { due, enqueued };
}

/** By the index of recoveries that are being checked: at rest this reads nothing. */
async function noticeCompleted(system: Sql): Promise<string[]> {
  const rows = await system<{ node_id: string }[]>`
    UPDATE node_verdicts v SET review_at = now() FROM incidents i
    WHERE i.checking_since IS NOT NULL AND i.closed_at IS NULL AND v.node_id = i.node_id AND v.review_at > now()
      AND EXISTS (SELECT FROM tasks t WHERE t.incident_id = i.id AND t.status = 'completed'
                  AND t.finished_at > v.classified_at)
    RETURNING v.node_id`;
  return rows.map(({ node_id }) => node_id);
}

const LACKING = '[{"missing": ["task_completed"]}]';

type Attempts = { made: number; open: number; last_ended_at: Date | null; now: Date };

/** Those of an incident `i` since the last repair. By the index of its tasks. */
const attemptsOf = (sql: Queryable) => sql`(
  SELECT count(*)::int AS made, count(*) FILTER (WHERE t.finished_at IS NULL)::int AS open,
         max(t.finished_at) AS last_ended_at, now() AS now
  FROM tasks t WHERE t.incident_id = i.id AND t.correlation_id = i.id::text AND t.type = ${TYPE}
    AND t.created_by = ${BY.actor_name} AND t.created_at > i.proof_after)`;

/** All are read, so that those whose attempts are used up do not keep others waiting. */
async function selectLacking(system: Sql): Promise<string[]> {
  const rows = await system<(Attempts & { id: string })[]>`
    SELECT i.id, a.made, a.open, a.last_ended_at, a.now FROM incidents i
    JOIN node_verdicts v ON v.node_id = i.node_id AND v.incident_id = i.id
    JOIN nodes n ON n.id = i.node_id
    CROSS JOIN LATERAL ${attemptsOf(system)} AS a
    WHERE i.checking_since IS NOT NULL AND i.closed_at IS NULL AND v.reporting AND n.status = 'active'
      AND n.revoked_at IS NULL AND v.causes::jsonb @> ${LACKING}::text::jsonb
    ORDER BY i.checking_since, i.id`;
  return rows
    .filter(isDue)
    .map(({ id }) => id)
    .slice(0, MOST_IN_A_TURN);
}

/** Returns whether it is the time for one. */
async function enqueueCheck(system: Sql, engine: Engine, incidentId: string): Promise<boolean> {
  const task = await system.begin(async (tx) => {
    const attempts = await lockAttempts(tx, incidentId);
    if (!attempts || !isDue(attempts)) return undefined;
    return engine.enqueue(
      tx,
      {
        ...{ nodeId: attempts.node_id, type: TYPE, priority: PRIORITY, by: BY, correlationId: incidentId },
        // Tenants read tasks, and incidents are not for them.
        params: { echo: `Recovery check ${attempts.made + 1}` },
        details: { incident_id: incidentId, attempt: attempts.made + 1, check: "task_completed" },
      },
      { audited: true },
    );
  });
  if (task) engine.enqueued(task);
  return task !== undefined;
}

/** Undefined: another replica is at it, or the incident is over. */
async function lockAttempts(tx: Tx, incidentId: string): Promise<(Attempts & { node_id: string }) | undefined> {
  const [locked] = await tx`
    SELECT FROM incidents WHERE id = ${incidentId} AND checking_since IS NOT NULL AND closed_at IS NULL
    FOR NO KEY UPDATE SKIP LOCKED`;
  if (!locked) return undefined;
  const [row] = await tx<(Attempts & { node_id: string })[]>`
    SELECT i.node_id, a.made, a.open, a.last_ended_at, a.now
    FROM incidents i CROSS JOIN LATERAL ${attemptsOf(tx)} AS a WHERE i.id = ${incidentId}`;
  return row;
}

/** The pause doubles with every attempt. */
export function isDue({ made, open, last_ended_at, now }: Attempts): boolean {
  if (open > 0 || made >= MOST_ATTEMPTS) return false;
  if (last_ended_at === null) return true;
  return now.getTime() - last_ended_at.getTime() >= FIRST_PAUSE_SECONDS * 1000 * 2 ** (made - 1);
}
