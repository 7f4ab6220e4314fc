// The frames between the gateway and agents that run steps (ADR 46). Each is one JSON text. Agents of other systems speak the
// first half, and drop what they do not know without a word; so they are sent only that. Agents that name `protocolVersion`
// in their `hello` speak all of it. Unknown fields are ignored on both sides.

import { z } from "zod";
import { AnyText, Id, ReportedText } from "../fields.ts";
import { SignedKeySet } from "../node/trust.ts";
import { executionKinds } from "./limits.ts";

export const EXECUTION_PATHS = ["/ws", "/ws/executor"] as const;

export { DEFAULT_MAX_IN_FLIGHT, EXECUTION_PROTOCOL, executionCloseCodes } from "./limits.ts";

export const ExecutionKind = z.enum(executionKinds);
export type ExecutionKind = z.infer<typeof ExecutionKind>;

const Tag = AnyText.min(1).max(128);
/** `runId:nodeId:attemptCount`. */
export const RequestId = AnyText.min(1).max(400);
/** Counts how often the request was given to an agent. */
const Generation = z.int().positive();
const delivery = { requestId: RequestId, generation: Generation };

export const AgentCapabilities = z.object({
  /** Kinds that this version does not know are kept and never chosen. */
  kinds: z.array(AnyText.min(1).max(64)).max(32),
  connectors: z.array(AnyText.min(1).max(120)).max(500).optional(),
  tags: z.array(Tag).max(100).optional(),
  maxInFlight: z.int().min(1).max(1000).optional(),
});
export type AgentCapabilities = z.infer<typeof AgentCapabilities>;

/** What an agent holds: it was given this delivery, and has neither declined it nor got its result acknowledged. */
export const HeldExecution = z.object(delivery);
export type HeldExecution = z.infer<typeof HeldExecution>;

/** The first frame of an agent. */
export const HelloFrame = z.object({
  type: z.literal("hello"),
  agentVersion: AnyText.max(64),
  name: AnyText.max(120),
  capabilities: AgentCapabilities,
  protocolVersion: z.int().positive().optional(),
  holding: z.array(HeldExecution).max(1000).optional(),
  /** The version of the newest set of signing keys that the agent has. */
  keySetVersion: z.int().nonnegative().optional(),
  /** Of the journal by which the agent knows what it ran. What another journal of the same agent was sent is never sent to it. */
  journalId: Id.optional(),
});
export type HelloFrame = z.infer<typeof HelloFrame>;

const PingFrame = z.object({ type: z.literal("ping"), ts: z.number() });

/** Ends a request. From an agent without `protocolVersion` it has no generation. */
export const ResultFrame = z.object({
  type: z.literal("execute_result"),
  requestId: RequestId,
  generation: Generation.optional(),
  status: z.enum(["succeeded", "failed"]),
  output: z.unknown().optional(),
  error: ReportedText.optional(),
});
export type ResultFrame = z.infer<typeof ResultFrame>;

/** The agent has the request on its disk and is about to run it. */
const AcceptedFrame = z.object({ type: z.literal("accepted"), ...delivery });

/** The agent did not start it and never will: another one may run it. */
const DeclinedFrame = z.object({ type: z.literal("declined"), ...delivery, reason: ReportedText.max(400) });

/** Sent at a quarter of the lease, for everything that runs. */
const RenewFrame = z.object({ type: z.literal("renew"), holding: z.array(HeldExecution).max(1000) });

const ProgressFrame = z.object({
  type: z.literal("progress"),
  ...delivery,
  message: ReportedText.max(400),
  percent: z.number().min(0).max(100).optional(),
});

export const outputStreams = ["stdout", "stderr"] as const;

/** A piece of what the step prints; `seq` counts from 1 for each delivery. */
const LogFrame = z.object({
  type: z.literal("log"),
  ...delivery,
  seq: z.int().positive(),
  stream: z.enum(outputStreams),
  text: ReportedText.max(65_536),
});

/** The agent is about to stop, and takes no new work. */
const AgentDrainFrame = z.object({ type: z.literal("drain") });

export const AgentFrame = z.discriminatedUnion("type", [
  HelloFrame,
  PingFrame,
  ResultFrame,
  AcceptedFrame,
  DeclinedFrame,
  RenewFrame,
  ProgressFrame,
  LogFrame,
  AgentDrainFrame,
]);
export type AgentFrame = z.infer<typeof AgentFrame>;

export type PongFrame = { type: "pong"; ts: number };

/** All that an agent without `protocolVersion` is ever sent, beside `pong`. */
export type ExecuteFrame = {
  type: "execute";
  requestId: string;
  organizationId: string;
  userId: string;
  kind: ExecutionKind;
  payload: unknown;
  /** Never null or empty: agents drop such a frame. */
  secret?: string;
};

/** What an agent with `protocolVersion` gets in addition. */
export type SignedExecuteFrame = ExecuteFrame & {
  agentId: string;
  generation: number;
  /** ISO 8601 with milliseconds, UTC: the text itself is signed. Not to be started after it. */
  expiresAt: string;
  /** Of the step, from its start. */
  timeoutMs: number;
  /** Detached JWS over the canonical JSON of `SignedExecution`, by a key that signs tasks. */
  signature: string;
  correlationId: string;
};

/** What the signature of a dispatch covers. `purpose` keeps it from being taken for a task's. */
export type SignedExecution = {
  purpose: "execution";
  request_id: string;
  agent_id: string;
  organization_id: string;
  user_id: string;
  kind: ExecutionKind;
  payload: unknown;
  timeout_ms: number;
  expires_at: string;
};

/** The response to a `hello` with `protocolVersion`. */
export const WelcomeFrame = z.object({
  type: z.literal("welcome"),
  protocolVersion: z.int().positive(),
  agentId: Id,
  organizationId: Id,
  sessionId: Id,
  leaseMs: z.int().positive(),
  /** Sets of signing keys that are newer than the agent's, in order; each is verified with the one before it (ADR 15). */
  keySets: z.array(SignedKeySet),
});
export type WelcomeFrame = z.infer<typeof WelcomeFrame>;

/** Every verdict is final: the agent forgets the request. */
export const ResultAckFrame = z.object({
  type: z.literal("result_ack"),
  requestId: RequestId,
  generation: Generation,
  verdict: z.enum(["accepted", "duplicate", "late", "unknown"]),
});
export type ResultAckFrame = z.infer<typeof ResultAckFrame>;

/** Stop it and report a result: cancelled by a person, ended, or given to another. */
export const CancelFrame = z.object({ type: z.literal("cancel"), ...delivery, reason: z.string() });
export type CancelFrame = z.infer<typeof CancelFrame>;

/** This gateway is about to stop: open another socket, then close this one when nothing is under way on it. */
export type GatewayDrainFrame = { type: "drain" };

/** Precedes a close by the gateway. */
export type ErrorFrame = { type: "error"; code: string; message: string; correlationId: string };
