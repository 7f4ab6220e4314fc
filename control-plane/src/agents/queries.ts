// SQL of agents that run steps, for lists.

import type { ExecutionAgent } from "@holdfast/contracts/endpoints/agents";
import type { Tx } from "../database/connect.ts";

type AgentRow = {
  id: string;
  name: string;
  revoked_at: Date | null;
  online: boolean;
  last_seen_at: Date | null;
  created_at: Date;
  creator_name: string;
  node_id: string | null;
  agent_version: string;
  protocol_version: number | null;
  kinds: string[];
  connectors: string[] | null;
  tags: string[];
  in_flight: number;
  max_in_flight: number;
  draining: boolean;
  other_journal_seen_at: Date | null;
};

/** Online ones first, revoked ones last. `staleMs`: without a sign of life for so long, an agent is offline. */
export async function selectAgents(tx: Tx, { staleMs }: { staleMs: number }): Promise<AgentRow[]> {
  return tx<AgentRow[]>`
    SELECT g.id, g.name, g.revoked_at, o.online, g.last_seen_at, g.created_at, g.creator_name, g.node_id, g.agent_version,
      g.protocol_version, g.kinds, g.connectors, g.tags, g.in_flight, g.max_in_flight, g.draining,
      CASE WHEN g.other_journal_seen_at > now() - interval '1 day' THEN g.other_journal_seen_at END AS other_journal_seen_at
    FROM execution_agents g CROSS JOIN LATERAL (SELECT
      coalesce(g.last_seen_at > now() - ${staleMs} * interval '1 millisecond', false) AND g.revoked_at IS NULL AS online) AS o
    ORDER BY g.revoked_at IS NOT NULL, NOT o.online, g.name, g.id`;
}

export function toAgent(row: AgentRow): ExecutionAgent {
  return {
    id: row.id,
    name: row.name,
    status: row.revoked_at ? "revoked" : row.online ? "online" : "offline",
    lastSeenAt: row.last_seen_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
    createdBy: row.creator_name,
    nodeId: row.node_id,
    revokedAt: row.revoked_at?.toISOString() ?? null,
    agentVersion: row.agent_version,
    protocolVersion: row.protocol_version,
    kinds: row.kinds,
    connectors: row.connectors,
    tags: row.tags,
    inFlight: row.in_flight,
    maxInFlight: row.max_in_flight,
    draining: row.draining,
    otherJournalSeenAt: row.other_journal_seen_at?.toISOString() ?? null,
  };
}

/** Revokes; a second time changes nothing. The caller has taken its requests from it. */
export async function markRevoked(tx: Tx, id: string): Promise<void> {
  await tx`
    UPDATE execution_agents SET revoked_at = coalesce(revoked_at, now()), in_flight = 0, closed_session_id = session_id,
      session_id = NULL, gateway_id = NULL, session_seen_at = NULL
    WHERE id = ${id}`;
}

/** Locks the agent: nothing is given to it meanwhile. */
export async function holdAgent(
  tx: Tx,
  id: string,
): Promise<{ id: string; org_id: string; name: string; revoked_at: Date | null } | undefined> {
  const [row] = await tx<{ id: string; org_id: string; name: string; revoked_at: Date | null }[]>`
    SELECT id, org_id, name, revoked_at FROM execution_agents WHERE id = ${id} FOR NO KEY UPDATE`;
  return row;
}
