// The requests of the gateway to the api about agents that run steps, and about the steps (ADR 46). Each call may carry many
// of its kind: what comes together at a gateway is one statement at the api.

import { z } from "zod";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { DispatchBody, ExecutionResult } from "../execution/dispatch.ts";
import {
  AgentCapabilities,
  ExecutionKind,
  HeldExecution,
  outputStreams,
  RequestId,
  ResultAckFrame,
} from "../execution/frames.ts";
import { AnyText, Id, ReportedText, Time } from "../fields.ts";
import { correlationIdForm } from "../headers.ts";
import { SignedKeySet } from "../node/trust.ts";

const CorrelationId = z.string().regex(correlationIdForm);
/** A gateway puts no more into one request, unless a single item is larger. */
export const MOST_BATCH_BYTES = 4 * 1024 * 1024;
const BODY_LIMIT = 4 * MOST_BATCH_BYTES;
/** Of the agent's journal; null: it names none. */
const JournalId = Id.nullable();
const sessions = "/internal/v1/agent-sessions";
const executions = "/internal/v1/executions";

/** Before the upgrade: nothing is opened for a token that is not accepted. */
export const admitAgent = endpoint({
  name: "admitAgent",
  noun: "service_api",
  method: "POST",
  path: `${sessions}/admit`,
  summary: "Whether this agent token is accepted",
  access: "service",
  body: z.strictObject({ token: AnyText.max(300), gateway_id: Id }),
  answer: z.strictObject({ agent_id: Id, org_id: Id, name: z.string() }),
  errors: ["agent_token_refused"],
});

/** A request as an agent gets it. */
export const ExecutionOffer = z.strictObject({
  request_id: RequestId,
  org_id: Id,
  agent_id: Id,
  session_id: Id,
  generation: z.int().positive(),
  user_id: Id,
  kind: ExecutionKind,
  payload: z.unknown(),
  timeout_ms: z.int().positive(),
  /** The end of the request, whatever its agent does. */
  deadline_at: Time,
  /** Null for an agent without `protocolVersion`. */
  signature: z.string().nullable(),
  expires_at: Time,
  secret: z.string().nullable(),
  correlation_id: z.string(),
  /** It is sent by no connection with another one. */
  journal_id: JournalId,
});
export type ExecutionOffer = z.infer<typeof ExecutionOffer>;

/** After `hello`. The newest session of an agent gets new work; what an older one holds stays with it. */
export const openAgentSession = endpoint({
  name: "openAgentSession",
  bodyLimit: BODY_LIMIT,
  noun: "service_api",
  method: "POST",
  path: `${sessions}/open`,
  summary: "An agent has connected and said what it can do",
  access: "service",
  body: z.strictObject({
    gateway_id: Id,
    agent_id: Id,
    session_id: Id,
    agent_version: AnyText.max(64),
    capabilities: AgentCapabilities,
    /** 0: an agent of another system. */
    protocol_version: z.int().nonnegative(),
    holding: z.array(HeldExecution).max(1000),
    key_set_version: z.int().nonnegative().nullable(),
    journal_id: JournalId,
    draining: z.boolean(),
    /** It was open before: a newer session of the agent stays the newest. */
    again: z.boolean(),
  }),
  answer: z.strictObject({
    lease_ms: z.int().positive(),
    /** What is given to this agent and not held by it: sent now. None that was sent to an agent without `protocolVersion`. */
    offers: z.array(ExecutionOffer),
    /** What it holds and shall not run any longer. */
    stop: z.array(z.strictObject({ request_id: RequestId, generation: z.int().positive(), reason: z.string() })),
    key_sets: z.array(SignedKeySet),
  }),
  errors: ["agent_token_refused"],
});

export const closeAgentSession = endpoint({
  name: "closeAgentSession",
  noun: "service_api",
  method: "POST",
  path: `${sessions}/close`,
  summary: "The connection of an agent has ended",
  access: "service",
  body: z.strictObject({ gateway_id: Id, agent_id: Id, session_id: Id, reason: AnyText.max(120) }),
});

/** Every few seconds, for all agents that were heard since; also what ends the sessions of a gateway that was killed. */
export const touchAgentSessions = endpoint({
  name: "touchAgentSessions",
  bodyLimit: BODY_LIMIT,
  noun: "service_api",
  method: "POST",
  path: `${sessions}/touch`,
  summary: "These agents are connected here",
  access: "service",
  body: z.strictObject({
    gateway_id: Id,
    sessions: z
      .array(z.strictObject({ agent_id: Id, session_id: Id, draining: z.boolean(), journal_id: JournalId }))
      .max(20_000),
  }),
  /** Sessions that no longer count: the token was revoked. */
  answer: z.strictObject({ revoked: z.array(Id).describe("Ids of sessions.") }),
});

/** New work for a session that another gateway or the worker has caused; the gateway was told by `agent_work`. */
export const takeAgentWork = endpoint({
  name: "takeAgentWork",
  noun: "service_api",
  method: "POST",
  path: `${sessions}/work`,
  summary: "What is given to this session and was not sent yet",
  access: "service",
  body: z.strictObject({ gateway_id: Id, agent_id: Id, session_id: Id }),
  answer: z.strictObject({ offers: z.array(ExecutionOffer) }),
});

/** Why an agent was not chosen. */
const notChosenReasons = [
  "offline",
  "draining",
  "full",
  "kind_missing",
  "connector_missing",
  "tag_missing",
  "other_agent",
  /** It said that it did not start this request. */
  "declined",
] as const;
export const NotChosen = z.strictObject({
  agent_id: Id,
  name: z.string(),
  reason: z.enum(notChosenReasons),
  message: z.string(),
});
export type NotChosen = z.infer<typeof NotChosen>;

const RequestedExecution = z.strictObject({
  body: DispatchBody,
  correlation_id: CorrelationId,
});

/** What became of a request. */
export const RequestVerdict = z.discriminatedUnion("state", [
  /** Given to an agent. `offer` is set when its session is at the gateway that asked, which sends it now. */
  z.strictObject({
    state: z.literal("assigned"),
    request_id: RequestId,
    agent_id: Id,
    deadline_at: Time,
    offer: ExecutionOffer.nullable(),
    /** It was requested before; nothing new was started. */
    known: z.boolean(),
  }),
  /** It waits for an agent. */
  z.strictObject({
    state: z.literal("pending"),
    request_id: RequestId,
    wait_until: Time,
    known: z.boolean(),
    not_chosen: z.array(NotChosen),
  }),
  z.strictObject({ state: z.literal("ended"), request_id: RequestId, result: ExecutionResult, ended_at: Time }),
  z.strictObject({ state: z.literal("no_agent"), request_id: RequestId, not_chosen: z.array(NotChosen) }),
  /** As in the error envelope. */
  z.strictObject({
    state: z.literal("refused"),
    request_id: RequestId,
    message: z.string(),
    next_step: z.string(),
  }),
]);
export type RequestVerdict = z.infer<typeof RequestVerdict>;

export const requestExecutions = endpoint({
  name: "requestExecutions",
  bodyLimit: BODY_LIMIT,
  noun: "service_api",
  method: "POST",
  path: executions,
  summary: "Store requests and give each to an agent; a request that is known is not stored again",
  access: "service",
  body: z.strictObject({ gateway_id: Id, requests: z.array(RequestedExecution).min(1).max(64) }),
  answer: z.strictObject({ verdicts: z.array(RequestVerdict).describe("In the order of the requests.") }),
});

const reported = { request_id: RequestId, agent_id: Id, session_id: Id };

/** What agents report; `generation` is null from an agent without `protocolVersion`. */
export const ExecutionEvent = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("accepted"), ...reported, generation: z.int().positive() }),
  z.strictObject({
    type: z.literal("declined"),
    ...reported,
    generation: z.int().positive(),
    reason: ReportedText.max(400),
  }),
  z.strictObject({ type: z.literal("renewed"), ...reported, generation: z.int().positive() }),
  z.strictObject({
    type: z.literal("progress"),
    ...reported,
    generation: z.int().positive(),
    message: ReportedText.max(400),
    percent: z.number().nullable(),
  }),
  z.strictObject({
    type: z.literal("log"),
    ...reported,
    generation: z.int().positive(),
    seq: z.int().positive(),
    stream: z.enum(outputStreams),
    text: ReportedText.max(65_536),
  }),
  z.strictObject({
    type: z.literal("result"),
    ...reported,
    generation: z.int().positive().nullable(),
    result: ExecutionResult,
  }),
]);
export type ExecutionEvent = z.infer<typeof ExecutionEvent>;

export const reportExecutionEvents = endpoint({
  name: "reportExecutionEvents",
  bodyLimit: BODY_LIMIT,
  noun: "service_api",
  method: "POST",
  path: `${executions}/events`,
  summary: "What agents reported about requests",
  access: "service",
  body: z.strictObject({ gateway_id: Id, events: z.array(ExecutionEvent).min(1).max(256) }),
  answer: z.strictObject({
    /** One for each event, in order. `stop`: this delivery shall not run any longer. */
    verdicts: z.array(z.strictObject({ verdict: ResultAckFrame.shape.verdict, stop: z.string().nullable() })),
  }),
});

/** For callers that wait at this gateway while the agent is at another one. */
export const readExecutionResults = endpoint({
  name: "readExecutionResults",
  bodyLimit: BODY_LIMIT,
  noun: "service_api",
  method: "POST",
  path: `${executions}/results`,
  summary: "The results of these requests, as far as they have ended",
  access: "service",
  body: z.strictObject({ gateway_id: Id, request_ids: z.array(RequestId).min(1).max(256) }),
  answer: z.strictObject({
    ended: z.array(
      z.strictObject({ request_id: RequestId, result: ExecutionResult, no_agent: z.array(NotChosen).nullable() }),
    ),
  }),
});

export const executionInternalEndpoints: readonly Endpoint[] = [
  admitAgent,
  openAgentSession,
  closeAgentSession,
  touchAgentSessions,
  takeAgentWork,
  requestExecutions,
  reportExecutionEvents,
  readExecutionResults,
];

/** What a gateway is told at once, beside the news of terminals. */
export const ExecutionNews = [
  z.strictObject({ type: z.literal("agent_revoked"), agent_id: Id }),
  z.strictObject({ type: z.literal("agent_work"), agent_id: Id, session_id: Id }),
  z.strictObject({
    type: z.literal("stop_execution"),
    agent_id: Id,
    session_id: Id,
    request_id: RequestId,
    generation: z.int().positive(),
    reason: z.string(),
  }),
  z.strictObject({ type: z.literal("execution_ended"), request_id: RequestId }),
] as const;
