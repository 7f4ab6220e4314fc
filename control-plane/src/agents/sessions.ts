// Connections of agents, as their gateways report them. The newest one of an agent gets new work. A connection that its
// gateway no longer touches counts as closed.

import { type AgentCapabilities, DEFAULT_MAX_IN_FLIGHT } from "@holdfast/contracts/execution/frames";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Fragment, Queryable, Sql } from "../database/connect.ts";
import { readAgentSecret } from "./tokens.ts";

export type AdmittedAgent = { agent_id: string; org_id: string; name: string };

/** `nodes`: whether nodes may run steps with their own identity. */
export type Allowed = { nodes?: boolean };

/** An agent `g` whose token is accepted: of a node, only as long as that is one of ours and policy allows it. */
const isAccepted = (sql: Queryable, { nodes = false }: Allowed): Fragment => sql`
  (g.revoked_at IS NULL AND (g.node_id IS NULL OR ${nodes} AND EXISTS (
    SELECT FROM nodes n WHERE n.id = g.node_id AND n.revoked_at IS NULL AND n.status IN ('active', 'draining'))))`;

/** Undefined: the token is malformed, unknown or no longer accepted. */
export async function admit(system: Sql, token: string, allowed: Allowed): Promise<AdmittedAgent | undefined> {
  const read = readAgentSecret(token);
  if (!read) return undefined;
  const [agent] = await system<AdmittedAgent[]>`
    SELECT g.id AS agent_id, g.org_id, g.name FROM execution_agents g
    WHERE g.token_hash = ${read.hash} AND g.org_id = ${read.orgId} AND ${isAccepted(system, allowed)}`;
  return agent;
}

export type Opened = {
  agentId: string;
  sessionId: string;
  gatewayId: string;
  agentVersion: string;
  capabilities: AgentCapabilities;
  protocolVersion: number;
  /** Null: the agent names none. */
  journalId: string | null;
  draining: boolean;
  /** It was open before: another connection that is open stays the newest. */
  again: boolean;
  correlationId: string;
};

/** What the audit says about a journal that is not the one before. */
const JOURNAL_CHANGED =
  "The agent has another journal than before: its credentials are in use on a second host, or its state directory was " +
  "replaced. New requests go to the newest connection. What was sent to the earlier journal is not sent again.";

/**
 * Undefined: the agent is unknown or revoked. `journalChanged`: see above. `sessionSeconds`: without a touch for so long, a
 * connection counts as closed. Locks the agent.
 */
export async function openSession(
  system: Sql,
  opened: Opened,
  { sessionSeconds, ...allowed }: { sessionSeconds: number } & Allowed,
): Promise<{ orgId: string; journalChanged: boolean } | undefined> {
  const { kinds, connectors = null, tags = [], maxInFlight = DEFAULT_MAX_IN_FLIGHT } = opened.capabilities;
  const [agent] = await system<{ orgId: string; journalChanged: boolean }[]>`
    WITH found AS MATERIALIZED (
      SELECT g.id, g.org_id, g.name, g.journal_id, g.session_id IS NOT NULL AND g.session_id <> ${opened.sessionId}
        AND g.session_seen_at > now() - ${sessionSeconds} * interval '1 second' AS other_open
      FROM execution_agents g WHERE g.id = ${opened.agentId} AND ${isAccepted(system, allowed)} FOR NO KEY UPDATE
    ), newest AS (
      UPDATE execution_agents g SET session_id = ${opened.sessionId}, gateway_id = ${opened.gatewayId},
        session_seen_at = now(), last_seen_at = now(), agent_version = ${opened.agentVersion},
        protocol_version = ${opened.protocolVersion}, kinds = ${kinds}, connectors = ${connectors}, tags = ${tags},
        max_in_flight = ${maxInFlight}, draining = ${opened.draining}, journal_id = ${opened.journalId}::uuid
      FROM found f WHERE g.id = f.id AND NOT (${opened.again} AND f.other_open)
      RETURNING g.id, f.journal_id <> g.journal_id AS journal_changed
    ), audited AS (
      INSERT INTO audit_events (id, org_id, actor_type, actor_name, role, action, target_type, target_id, target_name, result,
        correlation_id, details)
      SELECT ${uuidv7()}::uuid, f.org_id, 'system', 'agents', 'system', 'agent.journal_changed', 'agent', f.id::text, f.name,
        'allowed', ${opened.correlationId}, jsonb_build_object('message', ${JOURNAL_CHANGED}::text,
          'journal_id', ${opened.journalId}::uuid, 'earlier_journal_id', f.journal_id, 'earlier_connection_open', f.other_open)
      FROM found f JOIN newest n ON n.id = f.id WHERE n.journal_changed
    )
    SELECT f.org_id AS "orgId", coalesce(n.journal_changed, false) AS "journalChanged"
    FROM found f LEFT JOIN newest n ON n.id = f.id`;
  return agent;
}

/** An older connection leaves the newest one as it is. */
export async function closeSession(system: Sql, closed: { agentId: string; sessionId: string }): Promise<void> {
  const { agentId, sessionId } = closed;
  await system`
    UPDATE execution_agents SET closed_session_id = ${sessionId}, last_seen_at = now(),
      session_id = nullif(session_id, ${sessionId}),
      gateway_id = CASE WHEN session_id <> ${sessionId} THEN gateway_id END,
      session_seen_at = CASE WHEN session_id <> ${sessionId} THEN session_seen_at END
    WHERE id = ${agentId} AND revoked_at IS NULL`;
}

export type Touched = { agent_id: string; session_id: string; draining: boolean; journal_id: string | null };

/**
 * These connections are alive. One of an agent whose newest has closed becomes the newest again. Returns the sessions of agents
 * that are revoked, unknown or no longer accepted, and the agents that began or ended draining, or turned out to have two journals. Locks: the
 * agents, in the order of their ids.
 */
export async function touchSessions(
  system: Sql,
  gatewayId: string,
  sessions: readonly Touched[],
  { sessionSeconds, ...allowed }: { sessionSeconds: number } & Allowed,
): Promise<{ revoked: string[]; changed: { id: string; orgId: string }[] }> {
  if (sessions.length === 0) return { revoked: [], changed: [] };
  const rows = await system<{ session_id: string; id: string | null; orgId: string; changed: boolean }[]>`
    WITH touched AS MATERIALIZED (
      SELECT * FROM unnest(${sessions.map((one) => one.agent_id)}::uuid[], ${sessions.map((one) => one.session_id)}::uuid[],
        ${sessions.map((one) => one.draining)}::boolean[], ${sessions.map((one) => one.journal_id)}::uuid[])
        AS t (agent_id, session_id, draining, journal_id)
    ), locked AS MATERIALIZED (
      SELECT g.id, g.org_id, g.session_id, g.closed_session_id, g.draining, g.journal_id,
        coalesce(g.other_journal_seen_at > now() - interval '1 minute', false) AS two_known,
        coalesce(g.session_seen_at > now() - ${sessionSeconds} * interval '1 second', false) AS connected
      FROM execution_agents g WHERE g.id IN (SELECT agent_id FROM touched) AND ${isAccepted(system, allowed)}
      ORDER BY g.id FOR NO KEY UPDATE
    ), judged AS MATERIALIZED (
      SELECT l.id, l.org_id, t.session_id, t.draining, l.draining AS was_draining, t.journal_id,
        l.session_id = t.session_id AS newest, l.two_known,
        coalesce(l.connected AND l.session_id <> t.session_id AND l.journal_id <> t.journal_id, false) AS two_journals,
        NOT l.connected AND t.session_id IS DISTINCT FROM l.closed_session_id
          AND t.session_id IS DISTINCT FROM l.session_id AS adopted
      FROM locked l JOIN touched t ON t.agent_id = l.id
    ), seen AS (
      UPDATE execution_agents g SET last_seen_at = now(),
        session_id = CASE WHEN j.adopted THEN j.session_id ELSE g.session_id END,
        gateway_id = CASE WHEN j.adopted THEN ${gatewayId}::uuid ELSE g.gateway_id END,
        journal_id = CASE WHEN j.adopted THEN j.journal_id ELSE g.journal_id END,
        other_journal_seen_at = CASE WHEN j.two_journals THEN now() ELSE g.other_journal_seen_at END,
        session_seen_at = CASE WHEN j.adopted OR j.newest THEN now() ELSE g.session_seen_at END,
        draining = CASE WHEN j.adopted OR j.newest THEN j.draining ELSE g.draining END
      FROM (
        SELECT DISTINCT ON (id) id, session_id, draining, journal_id, coalesce(newest, false) AS newest, adopted,
          bool_or(two_journals) OVER (PARTITION BY id) AS two_journals
        FROM judged
        ORDER BY id, newest DESC NULLS LAST, adopted DESC
      ) AS j WHERE g.id = j.id
    )
    SELECT t.session_id, l.id, l.org_id AS "orgId",
      coalesce((j.newest OR j.adopted) AND (j.draining <> j.was_draining OR j.adopted) OR j.two_journals AND NOT j.two_known,
        false) AS changed
    FROM touched t LEFT JOIN locked l ON l.id = t.agent_id LEFT JOIN judged j ON j.id = t.agent_id AND j.session_id = t.session_id
    WHERE l.id IS NULL OR j.adopted OR j.draining <> j.was_draining OR j.two_journals`;
  const revoked = rows.filter(({ id }) => id === null).map(({ session_id }) => session_id);
  const changed = rows.flatMap(({ id, orgId, changed }) => (changed && id !== null ? [{ id, orgId }] : []));
  return {
    revoked,
    changed: revoked.length === 0 ? changed : [...changed, ...(await endSessions(system, revoked))],
  };
}

/** Of agents that are not revoked themselves and no longer accepted: nothing is given to them from now on. */
async function endSessions(system: Sql, sessionIds: readonly string[]): Promise<{ id: string; orgId: string }[]> {
  return system<{ id: string; orgId: string }[]>`
    UPDATE execution_agents SET closed_session_id = session_id, session_id = NULL, gateway_id = NULL, session_seen_at = NULL
    WHERE session_id = ANY (${[...sessionIds]}::uuid[]) AND revoked_at IS NULL
    RETURNING id, org_id AS "orgId"`;
}

/** Undefined: the session is not the agent's newest one, or the agent is revoked. */
export async function newestSession(
  system: Sql,
  { agentId, sessionId, gatewayId }: { agentId: string; sessionId: string; gatewayId: string },
): Promise<{ protocolVersion: number; journalId: string | null } | undefined> {
  const [row] = await system<{ protocolVersion: number; journalId: string | null }[]>`
    SELECT coalesce(protocol_version, 0) AS "protocolVersion", journal_id AS "journalId" FROM execution_agents
    WHERE id = ${agentId} AND session_id = ${sessionId} AND gateway_id = ${gatewayId} AND revoked_at IS NULL`;
  return row;
}
