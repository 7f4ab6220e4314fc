// Ends requests by the results of their agents: the current delivery's is accepted once, any other is kept as evidence.
//
// Locks: the agents, in the order of their ids; then waits for the requests, in the order of theirs.

import type { ExecutionState } from "@holdfast/contracts/endpoints/executions";
import { type Queryable, rowsOf } from "../../database/connect.ts";
import { targetOf } from "../../mechanisms/transition-sql.ts";
import { countReleased } from "./room.ts";
import { byEvent, errorText, isCurrent, isKnownTo, isRepeated } from "./sql.ts";
import type { ExecutionEvent } from "./table.ts";

export type ReportedResult = {
  requestId: string;
  agentId: string;
  /** Null: of an agent of another system, which knows none. */
  generation: number | null;
  status: "succeeded" | "failed";
  /** JSON. */
  output: string | null;
  error: string | null;
  /** A shell task without one did not run. */
  hasExitCode: boolean;
};

export type Judged = {
  request_id: string;
  agent_id: string;
  verdict: "accepted" | "duplicate" | "late";
  /** Of an accepted result: as it was stored. */
  id: string;
  org_id: string;
  status: ExecutionState;
  asked_by: string;
  asked_elsewhere: boolean;
};

const reported = rowsOf<ReportedResult>({
  request_id: ["text", (one) => one.requestId],
  agent_id: ["uuid", (one) => one.agentId],
  generation: ["integer", (one) => one.generation],
  status: ["text", (one) => one.status],
  output: ["text", (one) => one.output],
  error: ["text", (one) => one.error],
  has_exit_code: ["boolean", (one) => one.hasExitCode],
});

const events: ExecutionEvent[] = ["result_succeeded", "result_failed", "result_cancelled"];
const columns = { event: "v.event", status: "l.old_status" };
const known = isKnownTo("e", "r");
const fence = { isRepeated: isRepeated("e", "r"), isCurrent: isCurrent("e", "r") };
const newStatus = byEvent(columns, events, targetOf);
const verdict = byEvent(columns, [...events, "result_stale", "result_repeated"], (outcome) =>
  typeof outcome === "object" ? "accepted" : outcome,
);
const stepFailed = errorText("NODE_EXECUTION_FAILED");
const wasCancelled = errorText("EXECUTION_CANCELLED");

/** What is stored as the output of a shell task that was reported as succeeded and did not run. */
export const DID_NOT_RUN =
  "The agent reported success without an exit code, so it did not run the shell task. " +
  "Check that the agent knows the task's fields and its sandbox backend.";

/**
 * A request may occur in `results` only once for each agent. Those that are not among the rows are unknown: no such request,
 * or not one that this agent has or had.
 */
export async function acceptResults(sql: Queryable, results: readonly ReportedResult[]): Promise<Judged[]> {
  return sql<Judged[]>`
    WITH reported AS MATERIALIZED (${reported(results)}), agents AS MATERIALIZED (
      SELECT g.id FROM execution_agents g
      WHERE g.id = ANY (${[...new Set(results.map(({ agentId }) => agentId))]}::uuid[]) AND g.revoked_at IS NULL
      ORDER BY g.id FOR NO KEY UPDATE
    ), locked AS MATERIALIZED (
      SELECT e.id, e.org_id, e.status AS old_status, e.asked_by, e.asked_elsewhere, r.*,
        e.shell AND r.status = 'succeeded' AND NOT r.has_exit_code AS not_run,
        e.cancel_requested_at IS NOT NULL AS to_cancel, ${fence.isRepeated} AS repeated, ${fence.isCurrent} AS current
      FROM reported r JOIN agents a ON a.id = r.agent_id JOIN executions e ON e.request_id = r.request_id AND ${known}
      WHERE (SELECT count(*) FROM agents) > 0
      ORDER BY e.id FOR NO KEY UPDATE OF e
    ), judged AS MATERIALIZED (
      SELECT l.*, v.event, ${newStatus} AS new_status, ${verdict} AS verdict
      FROM locked l CROSS JOIN LATERAL (SELECT CASE
        WHEN l.repeated THEN 'result_repeated' WHEN NOT l.current THEN 'result_stale'
        WHEN l.status = 'succeeded' AND NOT l.not_run THEN 'result_succeeded'
        WHEN l.to_cancel THEN 'result_cancelled' ELSE 'result_failed' END AS event) AS v
    ), released AS (
      UPDATE executions e SET status = j.new_status, reported = true, finished_at = now(), revision = e.revision + 1,
        lease_until = NULL, sealed_secret = NULL,
        output = CASE WHEN j.not_run THEN json_build_object('message', ${DID_NOT_RUN}::text, 'reported', j.output::json)
                      ELSE j.output::json END,
        error = CASE j.event WHEN 'result_failed' THEN CASE WHEN j.not_run THEN ${stepFailed}
                                                            ELSE coalesce(j.error, ${stepFailed}) END
                             WHEN 'result_cancelled' THEN ${wasCancelled} END
      FROM judged j WHERE e.id = j.id AND j.verdict = 'accepted'
      RETURNING e.id, e.agent_id
    ), counted AS (${countReleased}), kept AS (
      INSERT INTO execution_late_results (execution_id, org_id, agent_id, status, output, error)
      SELECT j.id, j.org_id, j.agent_id, j.status, j.output::json, j.error FROM judged j WHERE j.verdict = 'late'
      ON CONFLICT DO NOTHING
    )
    SELECT request_id, agent_id, verdict, id, org_id, new_status AS status, asked_by, asked_elsewhere FROM judged`;
}
