// Connections of agents, as their gateways report them. The newest one of an agent gets new work. A connection that its
// gateway no longer touches counts as closed.

import { type AgentCapabilities, DEFAULT_MAX_IN_FLIGHT } from "@holdfast/contracts/execution/frames";
import type { Sql } from "../database/connect.ts";
import { readAgentSecret } from "./tokens.ts";

export type AdmittedAgent = { agent_id: string; org_id: string; name: string };

/** Undefined: the token is malformed, unknown or revoked. */
export async function admit(system: Sql, token: string): Promise<AdmittedAgent | undefined> {
  const read = readAgentSecret(token);
  if (!read) return undefined;
  const [agent] = await system<AdmittedAgent[]>`
    SELECT id AS agent_id, org_id, name FROM execution_agents
    WHERE token_hash = ${read.hash} AND org_id = ${read.orgId} AND revoked_at IS NULL`;
  return agent;
}

export type Opened = {
  agentId: string;
  sessionId: string;
  gatewayId: string;
  agentVersion: string;
  capabilities: AgentCapabilities;
  protocolVersion: number;
};

/** Undefined: the agent is unknown or revoked. */
export async function openSession(system: Sql, opened: Opened): Promise<{ orgId: string } | undefined> {
  const { kinds, connectors = null, tags = [], maxInFlight = DEFAULT_MAX_IN_FLIGHT } = opened.capabilities;
  const [agent] = await system<{ orgId: string }[]>`
    UPDATE execution_agents SET session_id = ${opened.sessionId}, gateway_id = ${opened.gatewayId}, session_seen_at = now(),
      last_seen_at = now(), agent_version = ${opened.agentVersion}, protocol_version = ${opened.protocolVersion},
      kinds = ${kinds}, connectors = ${connectors}, tags = ${tags}, max_in_flight = ${maxInFlight}, draining = false
    WHERE id = ${opened.agentId} AND revoked_at IS NULL
    RETURNING org_id AS "orgId"`;
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

export type Touched = { agent_id: string; session_id: string; draining: boolean };

/**
 * These connections are alive. One of an agent whose newest has closed becomes the newest again. Returns the sessions of agents
 * that are revoked or unknown, and the agents that began or ended draining. Locks: the agents, in the order of their ids.
 */
export async function touchSessions(
  system: Sql,
  gatewayId: string,
  sessions: readonly Touched[],
  { sessionSeconds }: { sessionSeconds: number },
): Promise<{ revoked: string[]; changed: { id: string; orgId: string }[] }> {
  if (sessions.length === 0) return { revoked: [], changed: [] };
  const rows = await system<{ session_id: string; id: string | null; orgId: string; changed: boolean }[]>`
    WITH touched AS MATERIALIZED (
      SELECT * FROM unnest(${sessions.map((one) => one.agent_id)}::uuid[], ${sessions.map((one) => one.session_id)}::uuid[],
        ${sessions.map((one) => one.draining)}::boolean[]) AS t (agent_id, session_id, draining)
    ), locked AS MATERIALIZED (
      SELECT g.id, g.org_id, g.session_id, g.closed_session_id, g.draining,
        coalesce(g.session_seen_at > now() - ${sessionSeconds} * interval '1 second', false) AS connected
      FROM execution_agents g WHERE g.id IN (SELECT agent_id FROM touched) AND g.revoked_at IS NULL
      ORDER BY g.id FOR NO KEY UPDATE
    ), judged AS MATERIALIZED (
      SELECT l.id, l.org_id, t.session_id, t.draining, l.draining AS was_draining,
        l.session_id = t.session_id AS newest,
        NOT l.connected AND t.session_id IS DISTINCT FROM l.closed_session_id
          AND t.session_id IS DISTINCT FROM l.session_id AS adopted
      FROM locked l JOIN touched t ON t.agent_id = l.id
    ), seen AS (
      UPDATE execution_agents g SET last_seen_at = now(),
        session_id = CASE WHEN j.adopted THEN j.session_id ELSE g.session_id END,
        gateway_id = CASE WHEN j.adopted THEN ${gatewayId}::uuid ELSE g.gateway_id END,
        session_seen_at = CASE WHEN j.adopted OR j.newest THEN now() ELSE g.session_seen_at END,
        draining = CASE WHEN j.adopted OR j.newest THEN j.draining ELSE g.draining END
      FROM (
        SELECT DISTINCT ON (id) id, session_id, draining, coalesce(newest, false) AS newest, adopted FROM judged
        ORDER BY id, newest DESC NULLS LAST, adopted DESC
      ) AS j WHERE g.id = j.id
    )
    SELECT t.session_id, l.id, l.org_id AS "orgId",
      coalesce((j.newest OR j.adopted) AND (j.draining <> j.was_draining OR j.adopted), false) AS changed
    FROM touched t LEFT JOIN locked l ON l.id = t.agent_id LEFT JOIN judged j ON j.id = t.agent_id AND j.session_id = t.session_id
    WHERE l.id IS NULL OR j.adopted OR j.draining <> j.was_draining`;
  return {
    revoked: rows.filter(({ id }) => id === null).map(({ session_id }) => session_id),
    changed: rows.flatMap(({ id, orgId, changed }) => (changed && id !== null ? [{ id, orgId }] : [])),
  };
}

/** Null: the session is not the agent's newest one, or the agent is revoked. */
export async function protocolOfSession(
  system: Sql,
  { agentId, sessionId, gatewayId }: { agentId: string; sessionId: string; gatewayId: string },
): Promise<number | null> {
  const [row] = await system<{ protocol_version: number }[]>`
    SELECT coalesce(protocol_version, 0) AS protocol_version FROM execution_agents
    WHERE id = ${agentId} AND session_id = ${sessionId} AND gateway_id = ${gatewayId} AND revoked_at IS NULL`;
  return row?.protocol_version ?? null;
}
