// Agents and executions as a gateway sees them at the api: a small model in memory that follows the contract. Requests are
// checked by the contract's schemas, as the api checks them.

import type { AnswerOf, BodyOf, Endpoint } from "@holdfast/contracts/endpoint";
import { ApiError } from "@holdfast/contracts/errors";
import {
  type DispatchBody,
  type ExecutionResult,
  executionTimeout,
  requestIdOf,
} from "@holdfast/contracts/execution/dispatch";
import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import {
  type admitAgent,
  type closeAgentSession,
  type ExecutionEvent,
  type ExecutionOffer,
  executionInternalEndpoints,
  type NotChosen,
  type openAgentSession,
  type RequestVerdict,
  type readExecutionResults,
  type reportExecutionEvents,
  type requestExecutions,
  type takeAgentWork,
  type touchAgentSessions,
} from "@holdfast/contracts/internal/executions";
import { uuidv7 } from "@holdfast/kit/uuid";

export type ModelAgent = { id: string; orgId: string; token: string; name: string; revoked: boolean };
type Session = BodyOf<typeof openAgentSession> & { touchedAt: number };
type State = "pending" | "given" | "ended" | "unplaced";
type Execution = {
  id: string;
  body: DispatchBody;
  state: State;
  agentId: string | undefined;
  generation: number;
  /** It was handed out to be sent. */
  offered: boolean;
  accepted: boolean;
  result: ExecutionResult | undefined;
  deadline: number;
  waitUntil: number;
  correlationId: string;
};

export type ExecutionModel = {
  /** An agent that is paired. */
  pair(options?: { orgId?: string; name?: string }): ModelAgent;
  revoke(agent: ModelAgent): void;
  /** What gateways have asked, in order. */
  calls: { name: string; body: unknown }[];
  events: ExecutionEvent[];
  sessions: ReadonlyMap<string, Session>;
  executions: ReadonlyMap<string, Execution>;
  /** The next answer to this endpoint is computed, and lost on its way. */
  loseAnswerTo: Set<string>;
  /** Requests to these endpoints are answered with 503. */
  unavailable: Set<string>;
  /** Requests to these endpoints wait for the promise first. */
  before: Map<string, Promise<unknown>>;
  cancel(requestId: string): void;
  /** Undefined: not one of its endpoints. */
  answer(path: string, body: unknown): Promise<{ value: unknown; lost: boolean } | undefined>;
};

const LEASE_MS = 30_000;

export function executionModel(publish: (news: ServiceNews) => void): ExecutionModel {
  const agents: ModelAgent[] = [];
  const sessions = new Map<string, Session>();
  const executions = new Map<string, Execution>();

  const agentOf = (id: string) => agents.find((one) => one.id === id);
  const newestSession = (agentId: string) => [...sessions.values()].findLast((one) => one.agent_id === agentId);
  const inFlight = (agentId: string) =>
    [...executions.values()].filter((one) => one.agentId === agentId && one.state === "given").length;

  const notChosen = (agent: ModelAgent, body: DispatchBody): NotChosen["reason"] | undefined => {
    const session = newestSession(agent.id);
    if (body.selectorAgentId !== undefined && body.selectorAgentId !== agent.id) return "other_agent";
    if (!session) return "offline";
    if (session.draining) return "draining";
    const { kinds, connectors, tags, maxInFlight = 10 } = session.capabilities;
    if (!kinds.includes(body.kind)) return "kind_missing";
    if (body.selectorTag !== undefined && !tags?.includes(body.selectorTag)) return "tag_missing";
    const connector = body.payload["connectorId"];
    if (body.kind === "connector.action" && connectors && !connectors.includes(String(connector)))
      return "connector_missing";
    return inFlight(agent.id) >= maxInFlight ? "full" : undefined;
  };
  const reasons = (body: DispatchBody): NotChosen[] =>
    agents
      .filter(({ orgId, revoked }) => orgId === body.organizationId && !revoked)
      .flatMap((agent) => {
        const reason = notChosen(agent, body);
        return reason ? [{ agent_id: agent.id, name: agent.name, reason, message: reason }] : [];
      });
  const choose = (body: DispatchBody) =>
    agents
      .filter((agent) => agent.orgId === body.organizationId && !agent.revoked && !notChosen(agent, body))
      .toSorted((a, b) => inFlight(a.id) - inFlight(b.id))[0];

  const offerOf = (execution: Execution, session: Session): ExecutionOffer => ({
    request_id: execution.id,
    org_id: execution.body.organizationId,
    agent_id: session.agent_id,
    session_id: session.session_id,
    generation: execution.generation,
    user_id: execution.body.requestedByUserId,
    kind: execution.body.kind,
    payload: execution.body.payload,
    timeout_ms: execution.body.timeoutMs ?? executionTimeout.usual,
    deadline_at: new Date(execution.deadline).toISOString(),
    signature: session.protocol_version > 0 ? "header..signature" : null,
    expires_at: new Date(execution.deadline).toISOString(),
    secret: execution.body.secret ?? null,
    correlation_id: execution.correlationId,
    journal_id: session.journal_id,
  });

  const end = (execution: Execution, state: "ended" | "unplaced", result: ExecutionResult) => {
    execution.state = state;
    execution.result = result;
    publish({ type: "execution_ended", request_id: execution.id });
    for (const waiting of executions.values()) if (waiting.state === "pending") place(waiting);
  };

  /** Gives it to an agent, if one can take it. */
  const place = (execution: Execution, askingGateway?: string): ExecutionOffer | undefined => {
    const agent = choose(execution.body);
    const session = agent && newestSession(agent.id);
    if (!agent || !session) return undefined;
    execution.state = "given";
    execution.agentId = agent.id;
    execution.generation += 1;
    execution.deadline = Date.now() + (execution.body.timeoutMs ?? executionTimeout.usual);
    const { generation } = execution;
    setTimeout(() => {
      if (execution.state !== "given" || execution.generation !== generation) return;
      const error = newestSession(agent.id) ? "NODE_EXECUTION_TIMEOUT" : "AGENT_DISCONNECTED";
      end(execution, "ended", { status: "failed", error });
    }, execution.deadline - Date.now()).unref();
    execution.offered = session.gateway_id === askingGateway;
    if (execution.offered) return offerOf(execution, session);
    publish({ type: "agent_work", agent_id: agent.id, session_id: session.session_id });
    return undefined;
  };

  const work = (session: Session, isHeld: (execution: Execution) => boolean): ExecutionOffer[] =>
    [...executions.values()]
      .filter((one) => one.state === "given" && one.agentId === session.agent_id && !isHeld(one))
      .filter((one) => session.protocol_version > 0 || !one.offered)
      .map((one) => {
        one.offered = true;
        return offerOf(one, session);
      });

  const answers = {
    admitAgent({ token }: BodyOf<typeof admitAgent>): AnswerOf<typeof admitAgent> {
      const agent = agents.find((one) => one.token === token && !one.revoked);
      if (!agent) throw new ApiError("agent_token_refused");
      return { agent_id: agent.id, org_id: agent.orgId, name: agent.name };
    },
    openAgentSession(body: BodyOf<typeof openAgentSession>): AnswerOf<typeof openAgentSession> {
      if (agentOf(body.agent_id)?.revoked !== false) throw new ApiError("agent_token_refused");
      const session = sessions.get(body.session_id) ?? { ...body, touchedAt: Date.now() };
      sessions.set(body.session_id, session);
      for (const waiting of executions.values()) if (waiting.state === "pending") place(waiting);
      const held = new Map(body.holding.map(({ requestId, generation }) => [requestId, generation]));
      const stop = body.holding.flatMap(({ requestId: request_id, generation }) => {
        const found = executions.get(request_id);
        const mine = found?.agentId === body.agent_id && found.generation === generation;
        return found && (!mine || found.state !== "given") ? [{ request_id, generation, reason: "ended" }] : [];
      });
      const offers = work(session, ({ id }) => held.has(id));
      return { lease_ms: LEASE_MS, offers, stop, key_sets: [] };
    },
    closeAgentSession({ session_id }: BodyOf<typeof closeAgentSession>): undefined {
      sessions.delete(session_id);
    },
    touchAgentSessions(body: BodyOf<typeof touchAgentSessions>): AnswerOf<typeof touchAgentSessions> {
      for (const { session_id, draining } of body.sessions) {
        const session = sessions.get(session_id);
        if (session) Object.assign(session, { draining, touchedAt: Date.now() });
      }
      const revoked = body.sessions.filter(({ agent_id }) => agentOf(agent_id)?.revoked !== false);
      return { revoked: revoked.map(({ session_id }) => session_id) };
    },
    takeAgentWork({ session_id }: BodyOf<typeof takeAgentWork>): AnswerOf<typeof takeAgentWork> {
      const session = sessions.get(session_id);
      return { offers: session ? work(session, ({ offered }) => offered) : [] };
    },
    requestExecutions({
      gateway_id,
      requests,
    }: BodyOf<typeof requestExecutions>): AnswerOf<typeof requestExecutions> {
      const ids = requests.map(({ body }) => requestIdOf(body));
      if (new Set(ids).size !== ids.length) throw new ApiError("invalid_request");
      return { verdicts: requests.map((one) => verdictOn(one.body, one.correlation_id, gateway_id)) };
    },
    reportExecutionEvents({
      events,
    }: BodyOf<typeof reportExecutionEvents>): AnswerOf<typeof reportExecutionEvents> {
      return { verdicts: events.map(judge) };
    },
    readExecutionResults({
      request_ids,
    }: BodyOf<typeof readExecutionResults>): AnswerOf<typeof readExecutionResults> {
      const ended = request_ids.flatMap((request_id) => {
        const found = executions.get(request_id);
        if (!found?.result) return [];
        return [
          { request_id, result: found.result, no_agent: found.state === "unplaced" ? reasons(found.body) : null },
        ];
      });
      return { ended };
    },
  };

  const verdictOn = (body: DispatchBody, correlationId: string, gatewayId: string): RequestVerdict => {
    const request_id = requestIdOf(body);
    const before = executions.get(request_id);
    if (before && before.body.organizationId !== body.organizationId)
      return {
        state: "refused",
        request_id,
        message: "Another request has this id.",
        next_step: "Use another run id.",
      };
    if (before?.state === "ended" && before.result)
      return { state: "ended", request_id, result: before.result, ended_at: new Date().toISOString() };
    const known = before !== undefined && before.state !== "unplaced";
    const now = Date.now();
    const execution: Execution = known
      ? before
      : {
          id: request_id,
          body,
          state: "pending",
          agentId: undefined,
          generation: before?.generation ?? 0,
          offered: false,
          accepted: false,
          result: undefined,
          deadline: now,
          waitUntil: now + (body.waitMs ?? 0),
          correlationId,
        };
    executions.set(request_id, execution);
    const offer = known ? undefined : place(execution, gatewayId);
    if (execution.state === "given" && execution.agentId !== undefined) {
      const deadline_at = new Date(execution.deadline).toISOString();
      return {
        state: "assigned",
        request_id,
        agent_id: execution.agentId,
        deadline_at,
        offer: offer ?? null,
        known,
      };
    }
    if (execution.waitUntil <= now) {
      execution.state = "unplaced";
      execution.result = { status: "failed", error: "NO_AGENT_AVAILABLE" };
      return { state: "no_agent", request_id, not_chosen: reasons(body) };
    }
    setTimeout(() => {
      if (execution.state === "pending")
        end(execution, "unplaced", { status: "failed", error: "NO_AGENT_AVAILABLE" });
    }, execution.waitUntil - now).unref();
    const wait_until = new Date(execution.waitUntil).toISOString();
    return { state: "pending", request_id, wait_until, known, not_chosen: reasons(body) };
  };

  const judge = (event: ExecutionEvent): AnswerOf<typeof reportExecutionEvents>["verdicts"][number] => {
    model.events.push(event);
    const execution = executions.get(event.request_id);
    if (!execution || execution.agentId !== event.agent_id) return { verdict: "unknown", stop: "unknown" };
    const isCurrent = event.generation === null || event.generation === execution.generation;
    if (execution.state !== "given" || !isCurrent) {
      return { verdict: event.type === "result" && isCurrent ? "duplicate" : "late", stop: "ended" };
    }
    if (event.type === "accepted") execution.accepted = true;
    if (event.type === "declined") {
      execution.state = "pending";
      execution.agentId = undefined;
      if (!place(execution)) setTimeout(() => execution.state === "pending" && place(execution), 100).unref();
    }
    if (event.type === "result") end(execution, "ended", stored(execution, event.result));
    return { verdict: "accepted", stop: null };
  };

  const model: ExecutionModel = {
    calls: [],
    events: [],
    sessions,
    executions,
    loseAnswerTo: new Set(),
    unavailable: new Set(),
    before: new Map(),
    pair({ orgId = uuidv7(), name = "worker-1" } = {}) {
      const agent = { id: uuidv7(), orgId, token: `${orgId}.hfx_${uuidv7()}`, name, revoked: false };
      agents.push(agent);
      return agent;
    },
    revoke(agent) {
      agent.revoked = true;
      publish({ type: "agent_revoked", agent_id: agent.id });
    },
    cancel(requestId) {
      const execution = executions.get(requestId);
      const session = execution?.agentId && newestSession(execution.agentId);
      if (!execution || !session) throw new Error("it has no agent that is connected");
      publish({
        type: "stop_execution",
        agent_id: session.agent_id,
        session_id: session.session_id,
        request_id: requestId,
        generation: execution.generation,
        reason: "cancelled",
      });
    },
    async answer(path, body) {
      const endpoint: Endpoint | undefined = executionInternalEndpoints.find((one) => one.path === path);
      if (!endpoint) return undefined;
      const name = endpoint.name as keyof typeof answers;
      const read = endpoint.body?.safeParse(body);
      if (!read?.success) throw new ApiError("invalid_request", { message: read?.error.message ?? "no body" });
      model.calls.push({ name, body: read.data });
      await model.before.get(name);
      if (model.unavailable.has(name)) throw new ApiError("shutting_down");
      const value = answers[name](read.data as never);
      return { value, lost: model.loseAnswerTo.delete(name) };
    },
  };
  return model;
}

/** A shell task that ends without an exit code did not run. */
function stored(execution: Execution, result: ExecutionResult): ExecutionResult {
  const { node } = execution.body.payload as { node?: { config?: { task?: unknown } } };
  const output = result.output as { exitCode?: unknown } | undefined;
  if (result.status === "failed" || !node?.config?.task || typeof output?.exitCode === "number") return result;
  return { ...result, status: "failed", error: "NODE_EXECUTION_FAILED" };
}
