// Agents that run steps of workflows in private networks (ADR 46). Paths, field names and upper-case codes are those that
// existing agents and scripts know, so they differ from the rest of this API.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { AgentCapabilities } from "../execution/frames.ts";
import { AnyText, Id, Time } from "../fields.ts";
import { SignedKeySet } from "../node/trust.ts";

const agentStates = ["online", "offline", "revoked"] as const;
export const AgentState = z.enum(agentStates);
export type AgentState = z.infer<typeof AgentState>;

export const ExecutionAgent = z.strictObject({
  id: Id,
  name: z.string().describe("The name of its host; several agents may have the same."),
  status: AgentState,
  lastSeenAt: Time.nullable(),
  createdAt: Time,
  createdBy: z.string().describe("Who created its pairing token; of a node, the node's name."),
  nodeId: Id.nullable().describe(
    "The node that runs steps with its own identity; null: it was paired with a token.",
  ),
  revokedAt: Time.nullable(),
  agentVersion: z.string(),
  protocolVersion: z.int().nullable().describe("Null until it has connected; 0: an agent of another system."),
  kinds: z.array(z.string()),
  connectors: z.array(z.string()).nullable().describe("Null: not limited to some."),
  tags: z.array(z.string()),
  inFlight: z.int(),
  maxInFlight: z.int(),
  draining: z.boolean(),
  otherJournalSeenAt: Time.nullable().describe(
    "When a connection with another journal was last open beside its newest one, in the last 24 hours: the agent's credentials are in use on " +
      "a second host, or its state directory was replaced. Null: not seen. The newest connection gets new requests, and no " +
      "request is sent to both.",
  ),
});
export type ExecutionAgent = z.infer<typeof ExecutionAgent>;

const organization = z.strictObject({ org_id: Id });

export const createAgentPairingToken = endpoint({
  name: "createAgentPairingToken",
  noun: "agents",
  method: "POST",
  path: "/v1/orgs/{org_id}/agents/pairing-tokens",
  summary: "Create a token that pairs one agent",
  description: "It works once, for 15 minutes, and is shown once. Pass it to `holdfast agent connect`.",
  access: { scope: "agents:write" },
  action: "agent.pairing_token_create",
  creates: true,
  upperCaseCodes: true,
  params: organization,
  answer: z.strictObject({ token: z.string(), expiresAt: Time }),
});

/** The agent token is shown once. */
export const AgentPairing = z.strictObject({
  agentId: Id,
  agentToken: z.string(),
  organizationId: Id,
  gatewayWsUrl: z.string(),
  /** The keys that dispatches are signed with; later sets are signed with these. */
  keySet: SignedKeySet,
});

export const pairAgent = endpoint({
  name: "pairAgent",
  noun: "agents",
  method: "POST",
  path: "/v1/agents/pair",
  summary: "Exchange a pairing token for an agent token",
  description: "`agentToken` is shown once. Only its hash is stored.",
  access: "public",
  action: "agent.pair",
  creates: true,
  upperCaseCodes: true,
  body: z.object({
    pairingToken: AnyText.max(300),
    name: AnyText.trim().min(1).max(120),
    agentVersion: AnyText.max(64),
    capabilities: AgentCapabilities,
  }),
  answer: AgentPairing,
  errors: ["pairing_token_invalid", "pairing_token_expired", "agent_gateway_missing", "rate_limit_exceeded"],
});

export const listAgents = endpoint({
  name: "listAgents",
  noun: "agents",
  method: "GET",
  path: "/v1/orgs/{org_id}/agents",
  summary: "List agents",
  description: "All agents of the organization, online ones first.",
  access: { scope: "agents:read" },
  upperCaseCodes: true,
  params: organization,
  answer: z.strictObject({ agents: z.array(ExecutionAgent) }),
});

export const revokeAgent = endpoint({
  name: "revokeAgent",
  noun: "agents",
  method: "POST",
  path: "/v1/orgs/{org_id}/agents/{agent_id}/revoke",
  summary: "Revoke an agent: its token is no longer accepted, and its connection is closed at once",
  access: { scope: "agents:write" },
  action: "agent.revoke",
  upperCaseCodes: true,
  params: z.strictObject({ org_id: Id, agent_id: Id }),
  answer: z.strictObject({ ok: z.literal(true) }),
  errors: ["agent_not_found"],
});
