// Pairs agents: a pairing token, which an owner or admin creates, is exchanged once for an agent token. A node needs none where
// policy allows it: its certificate is enough.

import type { BodyOf } from "@holdfast/contracts/endpoint";
import type { pairAgent } from "@holdfast/contracts/endpoints/agents";
import { ApiError } from "@holdfast/contracts/errors";
import { DEFAULT_MAX_IN_FLIGHT } from "@holdfast/contracts/execution/frames";
import type { pairNode } from "@holdfast/contracts/node/endpoints";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { recordAudit } from "../audit/record.ts";
import type { Sql, Tx } from "../database/connect.ts";
import { networkOf, takeAttempt } from "../mechanisms/rate-limit.ts";
import type { Maker } from "../tokens/queries.ts";
import { isBacked } from "../tokens/standing.ts";
import { makeAgentSecret, readAgentSecret } from "./tokens.ts";

const VALID_MINUTES = 15;
/** Only failures are limited, so that agents behind one address pair as fast as they can. */
const failedPairings = { attempts: 60, windowSeconds: 60 };

export async function createPairingToken(
  tx: Tx,
  { orgId, createdBy, creatorName, parentId }: Maker & { orgId: string },
): Promise<{ id: string; token: string; expiresAt: Date }> {
  const { token, hash } = makeAgentSecret(orgId);
  const id = uuidv7();
  const [row] = await tx<{ expires_at: Date }[]>`
    INSERT INTO execution_pairing_tokens (id, org_id, secret_hash, created_by, creator_name, parent_id, expires_at)
    VALUES (${id}, ${orgId}, ${hash}, ${createdBy}, ${creatorName}, ${parentId},
      now() + ${VALID_MINUTES} * interval '1 minute')
    RETURNING expires_at`;
  if (!row) throw new Error("a pairing token is missing in its own transaction");
  return { id, token, expiresAt: row.expires_at };
}

export type Paired = { agentId: string; agentToken: string; organizationId: string; gatewayWsUrl: string };
type From = { address: string; correlationId: string };

/** Token, agent and audit event in one transaction. Of two agents with the same token exactly one is paired. */
export async function pair(
  { system, log, gatewayWsUrl }: { system: Sql; log: Log; gatewayWsUrl: string | undefined },
  request: BodyOf<typeof pairAgent>,
  from: From,
): Promise<Paired> {
  const read = readAgentSecret(request.pairingToken);
  try {
    if (!read) throw new ApiError("pairing_token_invalid");
    return await system.begin(async (tx) => {
      const agentId = uuidv7();
      const [token] = await tx<{ id: string; creator_name: string }[]>`
        UPDATE execution_pairing_tokens t SET used_at = now(), agent_id = ${agentId}
        WHERE t.secret_hash = ${read.hash} AND t.org_id = ${read.orgId} AND t.used_at IS NULL AND t.revoked_at IS NULL
          AND t.expires_at > now() AND ${isBacked(tx, "pairing_token")}
        RETURNING t.id, t.creator_name`;
      if (!token) throw await whyRefused(tx, read);
      // The agent would not know where to connect. Its token stays as it is.
      if (gatewayWsUrl === undefined) throw new ApiError("agent_gateway_missing");
      const { token: agentToken, hash } = makeAgentSecret(read.orgId);
      await insertAgent(tx, { ...request, id: agentId, orgId: read.orgId, hash, creatorName: token.creator_name });
      await recordAudit(tx, log, {
        orgId: read.orgId,
        by: { actor_type: "anonymous", actor_id: null, actor_name: "anonymous", role: "none" },
        action: "agent.pair",
        target: { type: "agent", id: agentId, name: request.name },
        result: "allowed",
        correlationId: from.correlationId,
        details: { pairing_token_id: token.id, agent_version: request.agentVersion },
      });
      return { agentId, agentToken, organizationId: read.orgId, gatewayWsUrl };
    });
  } catch (error) {
    if (error instanceof ApiError)
      await countRefused({ system, log }, request, { ...from, error, hash: read?.hash });
    throw error;
  }
}

type ByIdentity = BodyOf<typeof pairNode> & { correlationId: string };

/**
 * The agent of a node, created by the first call. Every call replaces the token, so that one which was copied from the node's memory
 * ends with the process. An agent that was revoked stays so. Locks the node.
 */
export async function pairByIdentity(
  {
    system,
    log,
    gatewayWsUrl,
    isAllowed,
  }: { system: Sql; log: Log; gatewayWsUrl: string | undefined; isAllowed: boolean },
  nodeId: string,
  { agentVersion, capabilities, correlationId }: ByIdentity,
): Promise<Paired> {
  if (!isAllowed) throw new ApiError("node_executions_off");
  return system.begin(async (tx) => {
    const [node] = await tx<{ org_id: string; name: string; active: boolean }[]>`
      SELECT org_id, name, status = 'active' AND revoked_at IS NULL AS active FROM nodes WHERE id = ${nodeId} FOR NO KEY UPDATE`;
    if (!node?.active) throw new ApiError("node_not_active");
    if (gatewayWsUrl === undefined) throw new ApiError("agent_gateway_missing");
    const { org_id: orgId, name } = node;
    const { token: agentToken, hash } = makeAgentSecret(orgId);
    const [known] = await tx<{ id: string; revoked: boolean }[]>`
      UPDATE execution_agents SET token_hash = CASE WHEN revoked_at IS NULL THEN ${hash}::bytea ELSE token_hash END
      WHERE node_id = ${nodeId} RETURNING id, revoked_at IS NOT NULL AS revoked`;
    if (known?.revoked) throw new ApiError("node_agent_revoked");
    const agentId = known?.id ?? uuidv7();
    if (!known) {
      const agent = {
        id: agentId,
        orgId,
        hash,
        creatorName: name,
        name: name.slice(0, 120),
        agentVersion,
        capabilities,
      };
      await insertAgent(tx, { ...agent, nodeId });
      await recordAudit(tx, log, {
        ...{ orgId, action: "agent.pair", result: "allowed", correlationId },
        by: { actor_type: "node", actor_id: nodeId, actor_name: name, role: "node" },
        target: { type: "agent", id: agentId, name },
        details: { node_id: nodeId, agent_version: agentVersion },
      });
    }
    return { agentId, agentToken, organizationId: orgId, gatewayWsUrl };
  });
}

async function insertAgent(
  tx: Tx,
  agent: Pick<BodyOf<typeof pairAgent>, "name" | "agentVersion" | "capabilities"> & {
    id: string;
    orgId: string;
    hash: Buffer;
    creatorName: string;
    nodeId?: string;
  },
): Promise<void> {
  const { kinds, connectors = null, tags = [], maxInFlight = DEFAULT_MAX_IN_FLIGHT } = agent.capabilities;
  await tx`
    INSERT INTO execution_agents (id, org_id, name, token_hash, creator_name, agent_version, kinds, connectors, tags,
      max_in_flight, node_id)
    VALUES (${agent.id}, ${agent.orgId}, ${agent.name}, ${agent.hash}, ${agent.creatorName}, ${agent.agentVersion},
      ${kinds}, ${connectors}, ${tags}, ${maxInFlight}, ${agent.nodeId ?? null})`;
}

/** A token that was used is invalid also when its time is over. */
async function whyRefused(tx: Tx, { orgId, hash }: { orgId: string; hash: Buffer }): Promise<ApiError> {
  const [row] = await tx<{ expired: boolean }[]>`
    SELECT t.expires_at <= now() AND t.used_at IS NULL AND t.revoked_at IS NULL AND ${isBacked(tx, "pairing_token")}
      AS expired
    FROM execution_pairing_tokens t WHERE t.secret_hash = ${hash} AND t.org_id = ${orgId}`;
  return new ApiError(row?.expired ? "pairing_token_expired" : "pairing_token_invalid");
}

/** Throws `rate_limit_exceeded` instead, without an audit event, when there were too many. */
async function countRefused(
  { system, log }: { system: Sql; log: Log },
  request: BodyOf<typeof pairAgent>,
  { error, address, correlationId, hash }: From & { error: ApiError; hash: Buffer | undefined },
): Promise<void> {
  await takeAttempt(system, failedPairings, "failed-pairing", networkOf(address));
  const [token] = await system<{ id: string; org_id: string }[]>`
    SELECT id, org_id FROM execution_pairing_tokens WHERE secret_hash = ${hash ?? Buffer.alloc(0)}`;
  await recordAudit(system, log, {
    orgId: token?.org_id ?? null,
    by: { actor_type: "anonymous", actor_id: null, actor_name: "anonymous", role: "none" },
    action: "agent.pair",
    target: { type: "agent_pairing_token", id: token?.id ?? null, name: request.name },
    result: "failed",
    reason: error.code,
    correlationId,
  });
}

/** Kept for a day after its time, so that whoever comes late is told that it has expired. */
export async function removeOldPairingTokens(system: Sql): Promise<number> {
  const { count } = await system`
    DELETE FROM execution_pairing_tokens WHERE expires_at <= now() - interval '1 day'`;
  return count;
}
