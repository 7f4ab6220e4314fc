// Statements of executions that only read; those that change them are in transitions/.

import type { Execution, ExecutionState } from "@holdfast/contracts/endpoints/executions";
import type { ExecutionKind } from "@holdfast/contracts/execution/frames";
import type { Queryable, Tx } from "../database/connect.ts";
import type { Candidate, Wanted } from "./choose.ts";
import { isInFlight, isWaiting } from "./transitions/sql.ts";

type CandidateRow = Omit<Candidate, "lastDispatchedAt"> & { orgId: string; dispatched: Date | null };
export type FoundCandidate = Candidate & { orgId: string };

/** `sessionSeconds`: without a touch for so long, a session counts as closed. */
const candidateColumns = (db: Queryable, sessionSeconds: number) => db`
  g.id, g.org_id AS "orgId", g.name, g.gateway_id AS "gatewayId", g.journal_id AS "journalId",
  coalesce(g.protocol_version, 0) AS "protocolVersion",
  g.draining OR EXISTS (SELECT FROM nodes n WHERE n.id = g.node_id AND n.status <> 'active') AS draining,
  g.kinds, g.connectors, g.tags, g.max_in_flight AS "maxInFlight", g.in_flight AS "inFlight",
  g.last_dispatched_at AS dispatched,
  CASE WHEN g.session_seen_at > now() - ${sessionSeconds} * interval '1 second' THEN g.session_id END AS "sessionId"`;

/** Connected agents. */
export async function selectCandidates(
  db: Queryable,
  orgId: string,
  { sessionSeconds }: { sessionSeconds: number },
): Promise<FoundCandidate[]> {
  const rows = await db<CandidateRow[]>`
    SELECT ${candidateColumns(db, sessionSeconds)} FROM execution_agents g
    WHERE g.org_id = ${orgId} AND g.revoked_at IS NULL AND g.session_id IS NOT NULL
      AND g.session_seen_at > now() - ${sessionSeconds} * interval '1 second'
    ORDER BY g.id`;
  return rows.map(toCandidate);
}

/** Connected agents first, and not all of thousands: for people. */
export async function selectToExplain(
  db: Queryable,
  orgId: string,
  { sessionSeconds }: { sessionSeconds: number },
): Promise<FoundCandidate[]> {
  const rows = await db<CandidateRow[]>`
    SELECT ${candidateColumns(db, sessionSeconds)} FROM execution_agents g
    WHERE g.org_id = ${orgId} AND g.revoked_at IS NULL
    ORDER BY g.session_id IS NULL, g.id LIMIT 200`;
  return rows.map(toCandidate);
}

export async function selectCandidatesById(
  db: Queryable,
  ids: readonly string[],
  { sessionSeconds }: { sessionSeconds: number },
): Promise<FoundCandidate[]> {
  const rows = await db<CandidateRow[]>`
    SELECT ${candidateColumns(db, sessionSeconds)} FROM execution_agents g
    WHERE g.id = ANY (${[...ids]}::uuid[]) AND g.revoked_at IS NULL`;
  return rows.map(toCandidate);
}

function toCandidate({ dispatched, ...row }: CandidateRow): FoundCandidate {
  return { ...row, lastDispatchedAt: dispatched?.getTime() ?? 0 };
}

/** What a request is offered with. */
export type OfferRow = {
  id: string;
  org_id: string;
  request_id: string;
  agent_id: string;
  generation: number;
  user_id: string;
  kind: ExecutionKind;
  payload: unknown;
  sealed_secret: Buffer | null;
  signature: string | null;
  timeout_ms: number;
  deadline_at: Date;
  correlation_id: string;
  journal_id: string | null;
};

/** A request that waits for an agent, with what decides which. */
export type WaitingRow = Omit<
  OfferRow,
  "agent_id" | "generation" | "signature" | "deadline_at" | "sealed_secret" | "journal_id"
> & {
  wait_until: Date;
  connector: string | null;
  selector_tag: string | null;
  selector_agent_id: string | null;
  declined_by: string[];
};

export const wantedOf = (row: Pick<WaitingRow, "kind" | "connector" | "declined_by"> & SelectorRow): Wanted => ({
  kind: row.kind,
  connector: row.connector,
  selectorAgentId: row.selector_agent_id,
  selectorTag: row.selector_tag,
  declinedBy: row.declined_by,
});
type SelectorRow = { selector_tag: string | null; selector_agent_id: string | null };

const waits = isWaiting();

const waitingColumns = (
  db: Queryable,
) => db`e.id, e.org_id, e.request_id, e.user_id, e.kind, e.payload, e.timeout_ms,
  e.correlation_id, e.wait_until, e.connector, e.selector_tag, e.selector_agent_id, e.declined_by`;

/** The oldest of an organization first. */
export async function selectWaiting(db: Queryable, orgId: string, limit: number): Promise<WaitingRow[]> {
  return db<WaitingRow[]>`
    SELECT ${waitingColumns(db)} FROM executions e WHERE e.org_id = ${orgId} AND ${waits} ORDER BY e.id LIMIT ${limit}`;
}

export async function selectWaitingById(db: Queryable, ids: readonly string[]): Promise<WaitingRow[]> {
  return db<WaitingRow[]>`
    SELECT ${waitingColumns(db)} FROM executions e
    WHERE e.id = ANY (${[...ids]}::uuid[]) AND ${waits} ORDER BY e.id`;
}

/** Goes from one organization with waiting requests to the next. */
export async function selectWaitingOrgs(db: Queryable): Promise<string[]> {
  const rows = await db<{ org_id: string }[]>`
    WITH RECURSIVE waiting AS (
      (SELECT e.org_id FROM executions e WHERE ${waits} ORDER BY e.org_id LIMIT 1)
      UNION ALL
      SELECT (SELECT e.org_id FROM executions e WHERE ${waits} AND e.org_id > w.org_id ORDER BY e.org_id LIMIT 1)
      FROM waiting w WHERE w.org_id IS NOT NULL
    ) SELECT org_id FROM waiting WHERE org_id IS NOT NULL`;
  return rows.map(({ org_id }) => org_id);
}

/** What is known of a request, for whoever dispatches it again or waits for it. */
export type KnownRow = {
  id: string;
  org_id: string;
  request_id: string;
  run_id: string;
  step_id: string;
  kind: ExecutionKind;
  status: ExecutionState;
  revision: number;
  agent_id: string | null;
  wait_until: Date | null;
  deadline_at: Date | null;
  finished_at: Date | null;
  output: unknown;
  output_erased_at: Date | null;
  error: string | null;
  connector: string | null;
  selector_tag: string | null;
  selector_agent_id: string | null;
  declined_by: string[];
};

export async function selectKnown(db: Queryable, requestIds: readonly string[]): Promise<KnownRow[]> {
  return db<KnownRow[]>`
    SELECT e.id, e.org_id, e.request_id, e.run_id, e.step_id, e.kind, e.status, e.revision, e.agent_id, e.wait_until,
      e.deadline_at, e.finished_at, e.output, e.output_erased_at, e.error, e.connector, e.selector_tag, e.selector_agent_id, e.declined_by
    FROM executions e WHERE e.request_id = ANY (${[...requestIds]}::text[])`;
}

export type ExecutionRow = Omit<KnownRow, "output"> & {
  workflow_id: string;
  attempt: number;
  agent_name: string | null;
  correlation_id: string;
  created_at: Date;
  dispatched_at: Date | null;
  accepted_at: Date | null;
  cancel_requested_at: Date | null;
  progress: { message: string; percent: number | null; at: string } | null;
};

const executionColumns = (
  tx: Queryable,
) => tx`e.id, e.org_id, e.request_id, e.run_id, e.workflow_id, e.step_id, e.attempt,
  e.kind, e.status, e.revision, e.error, e.agent_id, g.name AS agent_name, e.connector, e.selector_tag, e.selector_agent_id,
  e.declined_by, e.correlation_id, e.created_at, e.dispatched_at, e.accepted_at, e.finished_at, e.deadline_at, e.wait_until,
  e.cancel_requested_at, e.progress, e.output_erased_at`;

export async function selectExecutions(
  tx: Tx,
  page: { before: string; limit: number; status?: ExecutionState; agentId?: string; requestId?: string },
): Promise<ExecutionRow[]> {
  return tx<ExecutionRow[]>`
    SELECT ${executionColumns(tx)} FROM executions e LEFT JOIN execution_agents g ON g.id = e.agent_id
    WHERE e.id < ${page.before}
      ${page.status === undefined ? tx`` : tx`AND e.status = ${page.status}`}
      ${page.agentId === undefined ? tx`` : tx`AND e.agent_id = ${page.agentId}`}
      ${page.requestId === undefined ? tx`` : tx`AND e.request_id = ${page.requestId}`}
    ORDER BY e.id DESC LIMIT ${page.limit + 1}`;
}

export async function selectExecution(
  tx: Tx,
  id: string,
): Promise<(ExecutionRow & { output: unknown }) | undefined> {
  const [row] = await tx<(ExecutionRow & { output: unknown })[]>`
    SELECT ${executionColumns(tx)}, e.output FROM executions e LEFT JOIN execution_agents g ON g.id = e.agent_id
    WHERE e.id = ${id}`;
  return row;
}

export async function selectLateResults(
  tx: Tx,
  id: string,
): Promise<{ at: Date; status: string; error: string | null }[]> {
  return tx<{ at: Date; status: string; error: string | null }[]>`
    SELECT received_at AS at, status, error FROM execution_late_results WHERE execution_id = ${id}
    ORDER BY received_at, agent_id`;
}

export function toExecution(row: ExecutionRow): Execution {
  return {
    id: row.id,
    request_id: row.request_id,
    run_id: row.run_id,
    workflow_id: row.workflow_id,
    step_id: row.step_id,
    attempt: row.attempt,
    kind: row.kind,
    status: row.status,
    error: row.error,
    agent_id: row.agent_id,
    agent_name: row.agent_name,
    selector: { tag: row.selector_tag, agent_id: row.selector_agent_id },
    correlation_id: row.correlation_id,
    created_at: row.created_at.toISOString(),
    dispatched_at: row.dispatched_at?.toISOString() ?? null,
    accepted_at: row.accepted_at?.toISOString() ?? null,
    finished_at: row.finished_at?.toISOString() ?? null,
    deadline_at: row.deadline_at?.toISOString() ?? null,
    cancel_requested_at: row.cancel_requested_at?.toISOString() ?? null,
    progress: row.progress,
  };
}

const inFlight = isInFlight();

/** Requests that their gateway was told of and did not take, and those to be stopped. */
export type Announced = {
  agent_id: string;
  /** The agent's newest session. */
  session_id: string;
  request_id: string;
  generation: number;
  cancel: boolean;
  /** The session by which it was sent; null: not sent yet. */
  sent_by: string | null;
};

/** Of these agents, or of all. */
export async function selectToAnnounce(db: Queryable, agentIds: readonly string[] | null): Promise<Announced[]> {
  return db<Announced[]>`
    SELECT g.id AS agent_id, g.session_id, e.request_id, e.generation, e.cancel_requested_at IS NOT NULL AS cancel,
      e.session_id AS sent_by
    FROM executions e JOIN execution_agents g ON g.id = e.agent_id
    WHERE ${inFlight} AND g.session_id IS NOT NULL AND (e.session_id IS NULL OR e.cancel_requested_at IS NOT NULL)
      ${agentIds === null ? db`` : db`AND g.id = ANY (${[...agentIds]}::uuid[])`}
    LIMIT 5000`;
}

export async function selectRequestIds(db: Queryable, ids: readonly string[]): Promise<string[]> {
  const rows = await db<{ request_id: string }[]>`
    SELECT request_id FROM executions WHERE id = ANY (${[...ids]}::uuid[])`;
  return rows.map(({ request_id }) => request_id);
}

/** A gateway that was cut off for longer has touched its sessions since. */
export async function selectLatelyRevoked(db: Queryable): Promise<string[]> {
  const rows = await db<{ id: string }[]>`
    SELECT id FROM execution_agents WHERE revoked_at > now() - interval '1 hour' ORDER BY revoked_at DESC LIMIT 1000`;
  return rows.map(({ id }) => id);
}
