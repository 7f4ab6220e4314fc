// Agents that run steps, over HTTP: pairing, the list, and revocation.

import { createAgentPairingToken, listAgents, pairAgent, revokeAgent } from "@holdfast/contracts/endpoints/agents";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { orgRoute, publicRoute } from "../api/route.ts";
import { takeFromAgent } from "../executions/transitions/revoke.ts";
import { presentExecutionUrl } from "../internal-api/gateways.ts";
import { nameOf } from "../people/actor.ts";
import { makerOf } from "../tokens/queries.ts";
import { createPairingToken, pair } from "./pairing.ts";
import { holdAgent, markRevoked, selectAgents, toAgent } from "./queries.ts";
import { shownStaleMs } from "./settings.ts";

export function agentRoutes(api: ApiContext): void {
  const { system, log, executions } = api;

  orgRoute(api, createAgentPairingToken, async ({ tx, org, actor, touched }) => {
    const maker = { ...(await makerOf(tx, actor)), creatorName: nameOf(actor) };
    const { id, token, expiresAt } = await createPairingToken(tx, { orgId: org.id, ...maker });
    touched({ type: "agent_pairing_token", id }, { expires_at: expiresAt.toISOString() });
    return { token, expiresAt: expiresAt.toISOString() };
  });

  publicRoute(api, pairAgent, async ({ body, address, correlationId }) => {
    const gatewayWsUrl = (await presentExecutionUrl(system)) ?? executions.wsUrl;
    const paired = await pair({ system, log, gatewayWsUrl }, body, { address, correlationId });
    executions.agentChanged({ id: paired.agentId, orgId: paired.organizationId });
    return { ...paired, keySet: api.nodes.keys.keySet() };
  });

  orgRoute(api, listAgents, async ({ tx }) => {
    const rows = await selectAgents(tx, { staleMs: shownStaleMs(executions.agentStaleMs) });
    return { agents: rows.map(toAgent) };
  });

  orgRoute(api, revokeAgent, async ({ tx, params, touched, afterCommit }) => {
    const agent = await holdAgent(tx, params.agent_id);
    if (!agent) throw new ApiError("agent_not_found");
    const taken = await takeFromAgent(tx, agent.id);
    await markRevoked(tx, agent.id);
    touched({ type: "agent", id: agent.id, name: agent.name }, { requests: taken.length });
    afterCommit(() => executions.agentRevoked(agent, taken));
    return { ok: true as const };
  });
}
