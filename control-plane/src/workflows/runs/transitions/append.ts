// Appends events to a run, with the cursor that follows from them and, at its end, its outcome: all of it, or nothing. Refused if
// another worker has the run, or has written since.

import type { RunEvent } from "@holdfast/workflows/run/events";
import type { RunState } from "@holdfast/workflows/run/state";
import { rowsOf, type Sql } from "../../../database/connect.ts";
import type { ClaimedRun } from "./claim.ts";
import { allows, isEnded, type RunTransition, stateAfter } from "./table.ts";

type Numbered = { seq: number; event: RunEvent };

const rows = rowsOf<Numbered>({
  seq: ["int", ({ seq }) => seq],
  type: ["text", ({ event }) => event.type],
  node: ["text", ({ event }) => ("node" in event ? event.node : null)],
  attempt: ["int", ({ event }) => ("attempt" in event ? event.attempt : null)],
  data: ["text", ({ event }) => JSON.stringify(dataOf(event))],
});

function dataOf(event: RunEvent): object {
  const { type: _, ...data } = event;
  const { node: __, attempt: ___, ...rest } = data as { node?: string; attempt?: number };
  return rest;
}

const transition = stateAfter("t.event");
const advances = allows("advance");
const ends = isEnded("t.status");

/** What people and the clock want of a run that is under way. */
export type Orders = { cancelRequested: boolean; overdue: boolean };

/** Undefined: refused. */
export async function appendEvents(
  system: Sql,
  run: Pick<ClaimedRun, "id" | "claim"> & { lastSeq: number },
  events: readonly RunEvent[],
  cursor: RunState,
): Promise<Orders | undefined> {
  const last = events.at(-1)?.type ?? "";
  const event: RunTransition = isEnd(last) ? last : "advance";
  const numbered = events.map((one, index) => ({ seq: run.lastSeq + 1 + index, event: one }));
  const [orders] = await system<Orders[]>`
    WITH appended AS MATERIALIZED (${rows(numbered)}), target AS MATERIALIZED (
      SELECT r.id, ${transition} AS status FROM workflow_runs r, (SELECT ${event}::text AS event) AS t
      WHERE r.id = ${run.id} AND r.claim = ${run.claim} AND r.last_seq = ${run.lastSeq} AND ${advances} FOR NO KEY UPDATE OF r
    ), moved AS (
      UPDATE workflow_runs r SET status = t.status, last_seq = r.last_seq + ${events.length},
        cursor = ${JSON.stringify(cursor)}::text::json,
        output = CASE WHEN ${ends} THEN ${JSON.stringify(cursor.output ?? null)}::text::json END,
        failure = ${cursor.failure === null ? null : JSON.stringify(cursor.failure)}::text::json,
        finished_at = CASE WHEN ${ends} THEN now() END,
        claimed_until = CASE WHEN ${ends} THEN NULL ELSE r.claimed_until END
      FROM target t WHERE r.id = t.id RETURNING r.id, r.org_id, r.cancel_requested, r.deadline_at <= now() AS overdue
    ), stored AS (
      INSERT INTO workflow_run_events (run_id, org_id, seq, type, node, attempt, data)
      SELECT m.id, m.org_id, a.seq, a.type, a.node, a.attempt, a.data::json FROM moved m, appended a
    )
    SELECT m.cancel_requested AS "cancelRequested", m.overdue FROM moved m`;
  return orders;
}

/** Undefined: another worker has the run. */
export async function readOrders(system: Sql, run: Pick<ClaimedRun, "id" | "claim">): Promise<Orders | undefined> {
  const [orders] = await system<Orders[]>`
    SELECT r.cancel_requested AS "cancelRequested", r.deadline_at <= now() AS overdue
    FROM workflow_runs r WHERE r.id = ${run.id} AND r.claim = ${run.claim}`;
  return orders;
}

const isEnd = (type: string): type is "run_succeeded" | "run_failed" | "run_cancelled" =>
  type === "run_succeeded" || type === "run_failed" || type === "run_cancelled";
