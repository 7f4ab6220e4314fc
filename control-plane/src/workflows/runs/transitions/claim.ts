// Gives runs that have something to do to one worker, for a short time that it renews. The claim is counted: what a worker writes
// after another one has taken over is refused (append.ts).

import type { AuditActor } from "../../../audit/record.ts";
import type { Sql } from "../../../database/connect.ts";
import { allows, stateAfter } from "./table.ts";

export const CLAIM_SECONDS = 15;

export type ClaimedRun = Pick<AuditActor, "actor_name"> & {
  id: string;
  org_id: string;
  workflow_id: string;
  version: number;
  status: string;
  input: unknown;
  cursor: unknown;
  last_seq: number;
  claim: number;
  cancel_requested: boolean;
  user_id: string;
  correlation_id: string;
  started_at: Date | null;
  overdue: boolean;
};

const canStart = allows("start");

/**
 * Organizations take turns: the run that has waited longest of each comes first. A run holds one of the `mostPerOrg` places of its
 * organization while a worker has it or an agent works for it; one that waits for a time, a person or an event holds none, however many
 * there are. Two workers that look at the same moment may let in one more each. Of each organization, at most `limit` runs of either
 * kind are read, by the index. Locks the runs; of two workers, the second sees the claim of the first.
 */
export async function claimRuns(
  system: Sql,
  options: { limit: number; mostPerOrg: number; queue: string },
): Promise<ClaimedRun[]> {
  const { limit, mostPerOrg, queue } = options;
  return system<ClaimedRun[]>`
    WITH RECURSIVE orgs AS (
      (SELECT r.org_id FROM workflow_runs r WHERE r.finished_at IS NULL AND r.claimed_until IS NULL AND r.queue = ${queue}
       ORDER BY r.org_id LIMIT 1)
      UNION ALL
      SELECT (SELECT r.org_id FROM workflow_runs r
        WHERE r.finished_at IS NULL AND r.claimed_until IS NULL AND r.queue = ${queue} AND r.org_id > orgs.org_id
        ORDER BY r.org_id LIMIT 1)
      FROM orgs WHERE orgs.org_id IS NOT NULL
    ), due AS MATERIALIZED (
      SELECT d.id, d.wake_at, row_number() OVER (PARTITION BY o.org_id ORDER BY d.wake_at, d.id) AS turn
      FROM orgs o CROSS JOIN LATERAL (
        (SELECT r.id, r.wake_at FROM workflow_runs r
         WHERE r.finished_at IS NULL AND r.claimed_until IS NULL AND r.queue = ${queue} AND r.org_id = o.org_id
           AND (r.awaits = '{}') = false AND r.wake_at <= now() ORDER BY r.wake_at LIMIT ${limit})
        UNION ALL
        (SELECT r.id, r.wake_at FROM workflow_runs r
         WHERE r.finished_at IS NULL AND r.claimed_until IS NULL AND r.queue = ${queue} AND r.org_id = o.org_id
           AND (r.awaits = '{}') = true AND r.wake_at <= now() ORDER BY r.wake_at
         LIMIT least(${limit}, ${mostPerOrg} - (SELECT count(*) FROM (
           SELECT FROM workflow_runs b WHERE b.finished_at IS NULL AND b.org_id = o.org_id AND (b.claimed_until IS NOT NULL OR b.awaits <> '{}')
           LIMIT ${mostPerOrg}) AS busy)))
      ) d
      UNION ALL
      -- What a worker left behind that does not renew its claim any more.
      SELECT r.id, r.claimed_until, 0 FROM workflow_runs r
      WHERE r.finished_at IS NULL AND r.claimed_until < now() AND r.queue = ${queue}
    ), chosen AS MATERIALIZED (
      SELECT id FROM due ORDER BY turn, wake_at LIMIT ${limit}
    )
    UPDATE workflow_runs r SET claim = r.claim + 1, claimed_until = now() + ${CLAIM_SECONDS} * interval '1 second', wake_at = 'infinity'
    FROM chosen c
    WHERE r.id = c.id AND r.finished_at IS NULL AND (r.claimed_until IS NULL OR r.claimed_until < now())
    RETURNING r.id, r.org_id, r.workflow_id, r.version, r.status, r.input, r.cursor, r.last_seq, r.claim, r.cancel_requested,
      r.user_id, r.correlation_id, r.started_at, r.actor_name, r.deadline_at <= now() AS overdue`;
}

/** The first event of a run, with its first cursor. */
export async function startRun(
  system: Sql,
  run: Pick<ClaimedRun, "id" | "claim">,
  { cursor, event, mostMs }: { cursor: object; event: object; mostMs: number },
): Promise<boolean> {
  const { count } = await system`
    WITH started AS (
      UPDATE workflow_runs r SET status = ${stateAfter("'start'")}, cursor = ${JSON.stringify(cursor)}::text::json,
        started_at = now(), last_seq = 1, deadline_at = least(r.deadline_at, now() + ${mostMs}::float8 * interval '1 millisecond')
      WHERE r.id = ${run.id} AND r.claim = ${run.claim} AND ${canStart} RETURNING r.id, r.org_id
    )
    INSERT INTO workflow_run_events (run_id, org_id, seq, type, data)
    SELECT id, org_id, 1, 'run_started', ${JSON.stringify(event)}::text::json FROM started`;
  return count === 1;
}

/** Of a run that was retried and had to wait for room again. */
export async function restartRun(system: Sql, run: Pick<ClaimedRun, "id" | "claim">): Promise<boolean> {
  const { count } = await system`
    UPDATE workflow_runs r SET status = ${stateAfter("'start'")} WHERE r.id = ${run.id} AND r.claim = ${run.claim} AND ${canStart}`;
  return count === 1;
}

export async function renewClaims(system: Sql, runs: readonly Pick<ClaimedRun, "id" | "claim">[]): Promise<void> {
  await system`
    UPDATE workflow_runs r SET claimed_until = now() + ${CLAIM_SECONDS} * interval '1 second'
    FROM unnest(${runs.map(({ id }) => id)}::uuid[], ${runs.map(({ claim }) => claim)}::int[]) AS held (id, claim)
    WHERE r.id = held.id AND r.claim = held.claim AND r.finished_at IS NULL`;
}

/** Whoever woke the run meanwhile is not forgotten: the earliest time counts, and the deadline is one of them. */
export async function releaseRun(
  system: Sql,
  run: Pick<ClaimedRun, "id" | "claim">,
  { wakeInMs, awaits }: { wakeInMs: number | null; awaits: readonly string[] },
): Promise<void> {
  await system`
    UPDATE workflow_runs r SET claimed_until = NULL, awaits = ${[...awaits]}::text[],
      wake_at = least(r.wake_at, r.deadline_at, now() + ${wakeInMs}::float8 * interval '1 millisecond')
    WHERE r.id = ${run.id} AND r.claim = ${run.claim}`;
}

/** Runs that wait for a request which has ended. */
export async function wakeAnswered(system: Sql): Promise<number> {
  const { count } = await system`
    UPDATE workflow_runs r SET wake_at = now()
    WHERE r.finished_at IS NULL AND r.awaits <> '{}' AND r.claimed_until IS NULL AND r.wake_at > now()
      AND EXISTS (SELECT FROM executions e WHERE e.request_id = ANY (r.awaits) AND e.finished_at IS NOT NULL)`;
  return count;
}
