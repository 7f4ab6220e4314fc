// Stores new requests, with the audit events of their dispatch. One for which an agent was chosen is given to it by the same
// statement, if that agent still has room; otherwise it waits.
//
// Locks: the chosen agents, in the order of their ids; then it inserts in the order of the request ids, so that two
// statements with the same requests do not wait for each other.

import type { ExecutionKind } from "@holdfast/contracts/execution/frames";
import { ConstantSql, type Queryable, rowsOf } from "../../database/connect.ts";
import { literal } from "../../mechanisms/transition-sql.ts";
import { countGiven, roomOfAgents } from "./room.ts";
import { ASSIGNED_STATUS, INITIAL_STATUS } from "./table.ts";

export type Assignment = {
  agentId: string;
  sessionId: string;
  /** Of the session. */
  journalId: string | null;
  signature: string | null;
  deadlineAt: Date;
  /** The agent is connected to the gateway that asks, which sends it as soon as it has the response. */
  sent: boolean;
  /** It is sent once and never again, so its secret is not kept. */
  once: boolean;
};

export type NewRequest = {
  id: string;
  orgId: string;
  requestId: string;
  runId: string;
  workflowId: string;
  stepId: string;
  stepType: string;
  attempt: number;
  userId: string;
  kind: ExecutionKind;
  shell: boolean;
  connector: string | null;
  selectorTag: string | null;
  selectorAgentId: string | null;
  /** JSON. */
  payload: string;
  sealedSecret: Buffer | null;
  /** The named secret that it was taken from. */
  secretId: string | null;
  secretVersion: number | null;
  timeoutMs: number;
  waitMs: number;
  gatewayId: string;
  correlationId: string;
  auditId: string;
  assignment: Assignment | undefined;
};

/** A request that is not among them is known already, or its organization is unknown. */
export type MadeRequest = { id: string; request_id: string; agent_id: string | null; wait_until: Date };

const requested = rowsOf<NewRequest>({
  id: ["uuid", (one) => one.id],
  org_id: ["uuid", (one) => one.orgId],
  request_id: ["text", (one) => one.requestId],
  run_id: ["text", (one) => one.runId],
  workflow_id: ["text", (one) => one.workflowId],
  step_id: ["text", (one) => one.stepId],
  step_type: ["text", (one) => one.stepType],
  attempt: ["integer", (one) => one.attempt],
  user_id: ["uuid", (one) => one.userId],
  kind: ["text", (one) => one.kind],
  shell: ["boolean", (one) => one.shell],
  connector: ["text", (one) => one.connector],
  selector_tag: ["text", (one) => one.selectorTag],
  selector_agent_id: ["uuid", (one) => one.selectorAgentId],
  payload: ["text", (one) => one.payload],
  sealed_secret: ["bytea", (one) => one.sealedSecret],
  secret_id: ["uuid", (one) => one.secretId],
  secret_version: ["integer", (one) => one.secretVersion],
  timeout_ms: ["integer", (one) => one.timeoutMs],
  wait_ms: ["integer", (one) => one.waitMs],
  asked_by: ["uuid", (one) => one.gatewayId],
  correlation_id: ["text", (one) => one.correlationId],
  audit_id: ["uuid", (one) => one.auditId],
  chosen_id: ["uuid", (one) => one.assignment?.agentId ?? null],
  chosen_session: ["uuid", (one) => one.assignment?.sessionId ?? null],
  signature: ["text", (one) => one.assignment?.signature ?? null],
  deadline_at: ["timestamptz", (one) => one.assignment?.deadlineAt ?? null],
  sent: ["boolean", (one) => one.assignment?.sent ?? false],
  once: ["boolean", (one) => one.assignment?.once ?? false],
});

const initialStatus = literal(INITIAL_STATUS);
const assignedStatus = literal(ASSIGNED_STATUS);

/** The audit event of a dispatch `m` as `a` requested it. */
export const auditDispatches = new ConstantSql(`
  INSERT INTO audit_events (id, org_id, actor_type, actor_name, role, action, target_type, target_id, target_name, result,
    correlation_id, details)
  SELECT a.audit_id, a.org_id, 'system', 'dispatch', 'system', 'execution.dispatch', 'execution', m.id::text, a.request_id,
    'allowed', a.correlation_id,
    jsonb_build_object('user_id', a.user_id, 'kind', a.kind, 'workflow_id', a.workflow_id, 'agent_id', m.agent_id)
  FROM given m JOIN requested a ON a.request_id = m.request_id`);

/** A request id may occur in `requests` only once. */
export async function insertRequests(
  sql: Queryable,
  requests: readonly NewRequest[],
  options: { sessionSeconds: number },
): Promise<MadeRequest[]> {
  const chosen = requests.flatMap(({ assignment }) => (assignment ? [assignment.agentId] : []));
  return sql<MadeRequest[]>`
    WITH requested AS MATERIALIZED (${requested(requests)}),
    room AS MATERIALIZED (${roomOfAgents(sql, chosen, options)}),
    placed AS MATERIALIZED (
      SELECT a.*, coalesce(
        row_number() OVER (PARTITION BY r.id ORDER BY a.id) <= r.room AND r.id IS NOT NULL, false) AS assigned,
        r.journal_id
      FROM requested a JOIN organizations o ON o.id = a.org_id
      LEFT JOIN room r ON r.id = a.chosen_id AND r.session_id = a.chosen_session
      WHERE NOT EXISTS (SELECT FROM executions k WHERE k.request_id = a.request_id)
    ), given AS (
      INSERT INTO executions AS e (id, org_id, request_id, run_id, workflow_id, step_id, step_type, attempt, user_id, kind,
        shell, connector, selector_tag, selector_agent_id, payload, timeout_ms, wait_until, asked_by, correlation_id,
        status, generation, agent_id, session_id, journal_id, signature, deadline_at, dispatched_at, sealed_secret, secret_id, secret_version)
      SELECT p.id, p.org_id, p.request_id, p.run_id, p.workflow_id, p.step_id, p.step_type, p.attempt, p.user_id, p.kind,
        p.shell, p.connector, p.selector_tag, p.selector_agent_id, p.payload::json, p.timeout_ms,
        now() + p.wait_ms * interval '1 millisecond', p.asked_by, p.correlation_id,
        CASE WHEN p.assigned THEN ${assignedStatus} ELSE ${initialStatus} END, p.assigned::integer,
        CASE WHEN p.assigned THEN p.chosen_id END, CASE WHEN p.assigned AND p.sent THEN p.chosen_session END,
        CASE WHEN p.assigned AND p.sent THEN p.journal_id END,
        CASE WHEN p.assigned THEN p.signature END, CASE WHEN p.assigned THEN p.deadline_at END,
        CASE WHEN p.assigned THEN now() END, CASE WHEN NOT (p.assigned AND p.once) THEN p.sealed_secret END,
        p.secret_id, p.secret_version
      FROM placed p ORDER BY p.request_id
      ON CONFLICT (request_id) DO NOTHING
      RETURNING e.id, e.request_id, e.agent_id, e.wait_until
    ), counted AS (${countGiven}), audited AS (${auditDispatches})
    SELECT id, request_id, agent_id, wait_until FROM given`;
}

/** What dispatching anew brings for a request that no agent took: its earlier payload may have been erased. */
export const requestedAgain = requested;
