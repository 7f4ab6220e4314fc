// An agent and its steps as the api sees them: paired by the public API, connected and served by a gateway of the test.

import { randomUUID } from "node:crypto";
import { createAgentPairingToken, pairAgent } from "@holdfast/contracts/endpoints/agents";
import {
  type ExecutionEvent,
  openAgentSession,
  type RequestVerdict,
  reportExecutionEvents,
  requestExecutions,
} from "@holdfast/contracts/internal/executions";
import type { TestApi } from "./api.ts";
import type { TestGateway } from "./services.ts";

export type TestAgent = {
  id: string;
  token: string;
  sessionId: string;
  /** Dispatches a step to the agent's organization, and returns what became of the request. */
  request(step?: Record<string, unknown>): Promise<RequestVerdict>;
  report(...events: NewEvent[]): Promise<unknown>;
};

type EventOf<E> = E extends { agent_id: string } ? Omit<E, "agent_id" | "session_id"> : never;
type NewEvent = EventOf<ExecutionEvent>;

export async function connectTestAgent(
  api: TestApi,
  gateway: TestGateway,
  options: { orgId: string; name?: string; tags?: string[]; protocolVersion?: number },
): Promise<TestAgent> {
  const { orgId, name = "edge-1", tags = [], protocolVersion = 1 } = options;
  const own = api.operator(orgId);
  const { token: pairingToken } = await own(createAgentPairingToken, { params: { org_id: orgId } });
  const capabilities = { kinds: ["agent.execute", "connector.action"], connectors: ["echo"], tags };
  const paired = await own(pairAgent, { body: { pairingToken, name, agentVersion: "1.2.3", capabilities } });
  const sessionId = randomUUID();
  const opened = await gateway.ask(openAgentSession, {
    body: {
      ...{ agent_id: paired.agentId, session_id: sessionId, agent_version: "1.2.3", capabilities },
      ...{ protocol_version: protocolVersion, holding: [], key_set_version: null },
      ...{ journal_id: null, draining: false, again: false },
    },
  });
  if (opened.status !== 200) throw new Error(`not connected: ${JSON.stringify(opened.body)}`);
  return {
    id: paired.agentId,
    token: paired.agentToken,
    sessionId,
    async request(step = {}) {
      const request = { body: stepOf(orgId, step), correlation_id: randomUUID() };
      const { body } = await gateway.ask(requestExecutions, { body: { requests: [request] } });
      const [verdict] = (body as { verdicts: RequestVerdict[] }).verdicts;
      if (!verdict) throw new Error(`no verdict: ${JSON.stringify(body)}`);
      return verdict;
    },
    report: (...events) =>
      gateway.ask(reportExecutionEvents, {
        body: { events: events.map((one) => ({ ...one, agent_id: paired.agentId, session_id: sessionId })) },
      }),
  };
}

/** A dispatch of a shell task; `changes` are fields of the request. */
export function stepOf(orgId: string, changes: Record<string, unknown> = {}): Record<string, unknown> {
  const nodeId = String(changes["nodeId"] ?? "build");
  const config = { task: { type: "shell", script: "make test" } };
  return {
    ...{ organizationId: orgId, requestedByUserId: randomUUID(), runId: randomUUID(), workflowId: randomUUID() },
    ...{ nodeId, nodeType: "agent.execute", attemptCount: 1, kind: "agent.execute" },
    payload: { nodeId, node: { id: nodeId, type: "agent.execute", config } },
    ...changes,
  };
}
