// Endpoints for gateways about connections of agents, on the internal listener.

import { ApiError } from "@holdfast/contracts/errors";
import type { HeldExecution } from "@holdfast/contracts/execution/frames";
import {
  admitAgent,
  closeAgentSession,
  openAgentSession,
  takeAgentWork,
  touchAgentSessions,
} from "@holdfast/contracts/internal/executions";
import type { ApiContext } from "../api/context.ts";
import { EXECUTION_LEASE_SECONDS } from "../executions/settings.ts";
import { type InternalApi, internalRoute } from "../internal-api/route.ts";
import { admit, closeSession, newestSession, openSession, touchSessions } from "./sessions.ts";

export function agentInternalRoutes(internalApi: InternalApi, api: ApiContext): void {
  const { system, executions, signals, log } = api;
  const limits = () => ({ sessionSeconds: executions.sessionSeconds, nodes: executions.nodesAllowed() });

  internalRoute(internalApi, admitAgent, async ({ body }) => {
    const agent = await admit(system, body.token, limits());
    if (!agent) throw new ApiError("agent_token_refused");
    return agent;
  });

  internalRoute(internalApi, openAgentSession, async ({ body, correlationId }) => {
    const {
      agent_id: agentId,
      session_id: sessionId,
      protocol_version: protocolVersion,
      journal_id: journalId,
    } = body;
    const opened = await openSession(
      system,
      {
        ...{ agentId, sessionId, protocolVersion, journalId, gatewayId: body.gateway_id },
        ...{ agentVersion: body.agent_version, capabilities: body.capabilities },
        ...{ draining: body.draining, again: body.again, correlationId },
      },
      limits(),
    );
    if (!opened) throw new ApiError("agent_token_refused");
    if (opened.journalChanged) {
      const about = {
        correlation_id: correlationId,
        org_id: opened.orgId,
        agent_id: agentId,
        journal_id: journalId,
      };
      log.warn(about, "an agent has another journal than before");
    }
    const connection = { agentId, sessionId, protocolVersion, journalId };
    const { holding } = body;
    const held = await executions.holds(connection, holding);
    const offers = await executions.takeWork(connection, {
      again: true,
      holding: holding.map(({ requestId }) => requestId),
    });
    executions.agentChanged({ id: agentId, orgId: opened.orgId });
    return {
      lease_ms: EXECUTION_LEASE_SECONDS * 1000,
      offers,
      stop: stopsOf(holding, held),
      key_sets: [
        ...(body.key_set_version === null || protocolVersion === 0
          ? []
          : await api.nodes.keys.keySetsAfter({ version: body.key_set_version, kids: [] })),
      ],
    };
  });

  internalRoute(internalApi, closeAgentSession, async ({ body }) => {
    await closeSession(system, { agentId: body.agent_id, sessionId: body.session_id });
    signals.publish("agent", [body.agent_id]);
    return undefined;
  });

  internalRoute(internalApi, touchAgentSessions, async ({ body }) => {
    const { revoked, changed } = await touchSessions(system, body.gateway_id, body.sessions, limits());
    for (const agent of changed) executions.agentChanged(agent);
    return { revoked };
  });

  internalRoute(internalApi, takeAgentWork, async ({ body }) => {
    const { agent_id: agentId, session_id: sessionId, gateway_id: gatewayId } = body;
    const session = await newestSession(system, { agentId, sessionId, gatewayId });
    if (!session) return { offers: [] };
    return {
      offers: await executions.takeWork({ agentId, sessionId, ...session }, { again: false, holding: [] }),
    };
  });
}

type Held = Awaited<ReturnType<ApiContext["executions"]["holds"]>>;

/** What the agent holds and nobody knows is to stop, too. */
function stopsOf(holding: readonly HeldExecution[], held: Held) {
  return holding.flatMap(({ requestId, generation }) => {
    const known = held.find((one) => one.request_id === requestId && one.generation === generation);
    if (known && known.outcome !== "asked_to_stop") return [];
    return [{ request_id: requestId, generation, reason: known?.reason ?? "unknown" }];
  });
}
