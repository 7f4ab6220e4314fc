// Metrics of executions in the api. Labels are states and the outcomes of the contract, never what an agent says.

import { executionOutcomes } from "@holdfast/contracts/execution/outcomes";
import type { Metrics } from "@holdfast/service/metrics";
import type { Queryable } from "../database/connect.ts";
import { isInFlight, isWaiting } from "./transitions/sql.ts";

const inFlight = isInFlight();
const waits = isWaiting();

/** Returns the function that counts an end, by its status or the error of the control plane. */
export function measureExecutions(
  metrics: Metrics,
  sql: Queryable,
  { sessionSeconds }: { sessionSeconds: number },
): (end: { status: string; error: string | null }) => void {
  const ended = metrics.countByCode(
    "holdfast_executions_ended_total",
    "Executions that have ended, by how they did",
  );
  metrics.gaugesBy("state", () => countOpen(sql), {
    holdfast_executions: { help: "Executions that have not ended, by state", of: (count) => count },
  });
  metrics.gaugesBy("state", () => countAgents(sql, sessionSeconds), {
    holdfast_execution_agents: {
      help: "Agents that run steps and are not revoked, by state",
      of: (count) => count,
    },
  });
  return ({ status, error }) => ended(error !== null && error in executionOutcomes ? error.toLowerCase() : status);
}

type Counted = { state: string; n: number };
const byState = (rows: readonly Counted[]) => new Map(rows.map(({ state, n }) => [state, n]));

async function countOpen(sql: Queryable): Promise<ReadonlyMap<string, number>> {
  return byState(
    await sql<Counted[]>`
    SELECT status AS state, count(*)::integer AS n FROM (
      SELECT e.status FROM executions e WHERE ${inFlight} UNION ALL SELECT e.status FROM executions e WHERE ${waits}
    ) AS open GROUP BY status`,
  );
}

async function countAgents(sql: Queryable, sessionSeconds: number): Promise<ReadonlyMap<string, number>> {
  return byState(
    await sql<Counted[]>`
    SELECT s.state, count(*)::integer AS n FROM execution_agents g CROSS JOIN LATERAL (SELECT CASE
      WHEN g.session_seen_at IS NULL OR g.session_seen_at <= now() - ${sessionSeconds} * interval '1 second' THEN 'offline'
      WHEN g.draining THEN 'draining' ELSE 'online' END AS state) AS s
    WHERE g.revoked_at IS NULL GROUP BY s.state`,
  );
}
