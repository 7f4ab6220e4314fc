// Statements of runs that read, or write what is no state; those that change runs are in transitions/.

import type { Run, RunEventEntry, RunNode, RunState } from "@holdfast/contracts/endpoints/runs";
import type { Node, WorkflowDocument } from "@holdfast/workflows/document/schema";
import { whichAgent } from "@holdfast/workflows/document/which-agent";
import type { Failure } from "@holdfast/workflows/run/events";
import type { RunState as Cursor } from "@holdfast/workflows/run/state";
import type { Queryable, Tx } from "../../database/connect.ts";

export type RunRow = {
  id: string;
  workflow_id: string;
  workflow_name: string;
  version: number;
  status: RunState;
  input: unknown;
  output: unknown;
  failure: Failure | null;
  cursor: Cursor | null;
  cancel_requested: boolean;
  actor_name: string;
  correlation_id: string;
  created_at: Date;
  started_at: Date | null;
  finished_at: Date | null;
  deadline_at: Date;
  trigger_type: "cron" | "webhook" | null;
  scheduled_at: Date | null;
  last_seq: number;
};

const columns = (db: Queryable) => db`
  r.id, r.workflow_id, w.name AS workflow_name, r.version, r.status, r.input, r.output, r.failure, r.cursor, r.cancel_requested,
  r.actor_name, r.correlation_id, r.created_at, r.started_at, r.finished_at, r.deadline_at, t.type AS trigger_type,
  r.scheduled_at, r.last_seq`;

const tables = (db: Queryable) => db`
  workflow_runs r JOIN workflows w ON w.id = r.workflow_id LEFT JOIN workflow_triggers t ON t.id = r.trigger_id`;

export async function selectRun(tx: Queryable, id: string): Promise<RunRow | undefined> {
  const [row] = await tx<RunRow[]>`
    SELECT ${columns(tx)} FROM ${tables(tx)} WHERE r.id = ${id}`;
  return row;
}

export async function selectRuns(
  tx: Tx,
  page: { before: string; limit: number; workflowId?: string; status?: RunState },
): Promise<RunRow[]> {
  return tx<RunRow[]>`
    SELECT ${columns(tx)} FROM ${tables(tx)}
    WHERE r.id < ${page.before}
      ${page.workflowId === undefined ? tx`` : tx`AND r.workflow_id = ${page.workflowId}`}
      ${page.status === undefined ? tx`` : tx`AND r.status = ${page.status}`}
    ORDER BY r.id DESC LIMIT ${page.limit + 1}`;
}

export function toRun(row: RunRow): Run {
  return {
    ...{ id: row.id, workflow_id: row.workflow_id, workflow_name: row.workflow_name, version: row.version },
    ...{ status: row.status, failure: row.failure, cancel_requested: row.cancel_requested },
    ...{ started_by: row.actor_name, correlation_id: row.correlation_id, trigger: row.trigger_type ?? "manual" },
    scheduled_at: row.scheduled_at?.toISOString() ?? null,
    created_at: row.created_at.toISOString(),
    started_at: row.started_at?.toISOString() ?? null,
    finished_at: row.finished_at?.toISOString() ?? null,
    deadline_at: row.deadline_at.toISOString(),
  };
}

type EventRow = {
  seq: number;
  at: Date;
  type: string;
  node: string | null;
  attempt: number | null;
  data: Record<string, unknown>;
};

export async function selectEvents(
  tx: Queryable,
  runId: string,
  { after, limit }: { after: number; limit: number },
): Promise<RunEventEntry[]> {
  const rows = await tx<EventRow[]>`
    SELECT seq, at, type, node, attempt, data FROM workflow_run_events
    WHERE run_id = ${runId} AND seq > ${after} ORDER BY seq LIMIT ${limit}`;
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }));
}

export async function requestCancel(tx: Tx, id: string): Promise<void> {
  await tx`UPDATE workflow_runs SET cancel_requested = true, wake_at = now() WHERE id = ${id} AND finished_at IS NULL`;
}

/** False: somebody was faster. */
export async function insertSignal(
  tx: Tx,
  run: { id: string; orgId: string },
  signal: { node: string; attempt: number; approved: boolean; output: unknown; by: string },
): Promise<boolean> {
  const { count } = await tx`
    INSERT INTO workflow_run_signals (run_id, org_id, node, attempt, approved, output, sender_name)
    VALUES (${run.id}, ${run.orgId}, ${signal.node}, ${signal.attempt}, ${signal.approved}, ${JSON.stringify(signal.output)}::text::json, ${signal.by})
    ON CONFLICT (run_id, node, attempt) DO NOTHING`;
  if (count === 1) await tx`UPDATE workflow_runs SET wake_at = now() WHERE id = ${run.id} AND finished_at IS NULL`;
  return count === 1;
}

/** By request: the agents that have the steps of a run. */
export async function selectPlacements(
  tx: Queryable,
  cursor: Cursor | null,
): Promise<ReadonlyMap<string, string>> {
  const requests = Object.values(cursor?.nodes ?? {}).flatMap((node) =>
    node.status === "dispatched" ? [node.requestId] : [],
  );
  if (requests.length === 0) return new Map();
  const rows = await tx<{ request_id: string; name: string }[]>`
    SELECT e.request_id, a.name FROM executions e JOIN execution_agents a ON a.id = e.agent_id WHERE e.request_id = ANY (${requests}::text[])`;
  return new Map(rows.map(({ request_id, name }) => [request_id, name]));
}

export function toNodes(
  document: WorkflowDocument,
  cursor: Cursor | null,
  placements: ReadonlyMap<string, string>,
): RunNode[] {
  return Object.entries(document.nodes).map(([id, node]) => {
    const state = cursor?.nodes[id] ?? { status: "pending" as const };
    return {
      ...{ id, type: node.type, status: state.status, attempt: ("attempt" in state && state.attempt) || null },
      waiting_for: waitingFor(node, state, placements),
      output: "output" in state ? state.output : null,
      failure: "failure" in state ? state.failure : null,
    };
  });
}

function waitingFor(
  node: Node,
  state: Cursor["nodes"][string],
  placements: ReadonlyMap<string, string>,
): string | null {
  switch (state.status) {
    case "dispatched": {
      const agent = placements.get(state.requestId);
      return agent === undefined ? `${whichAgent(node)} (no agent has it yet)` : `the result of agent ${agent}`;
    }
    case "retrying":
      return `attempt ${state.attempt} at ${state.notBefore}`;
    case "waiting": {
      if (node.type !== "wait" || node.for !== undefined) return `${state.until}`;
      const what = node.event === undefined ? "an approval" : `the event ${node.event}`;
      return state.until === null ? what : `${what}, until ${state.until}`;
    }
    default:
      return null;
  }
}
