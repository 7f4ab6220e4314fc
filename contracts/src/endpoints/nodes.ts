// Nodes: the machines of an organization, as the server knows them.

import { z } from "zod";
import { endpoint } from "../endpoint.ts";
import { Id, Text, Time } from "../fields.ts";
import { HostHealth } from "../node/host-health.ts";
import { AgentSetup, DiagnosticRecord, HostFacts, NodeLabel, NodeStatus } from "../node/protocol.ts";
import { PageQuery, pageOf } from "../public/pagination.ts";
import { reasonFields } from "../public/reason-fields.ts";
import { hopDetails, hops, terminalHops } from "../reasons/hops.ts";
import { nodeOwners } from "../reasons/owners.ts";
import { userStates } from "../reasons/vocabulary.ts";
import { causeConfidences, Layers } from "./drift.ts";
import { NewEnrollmentToken, NodeName } from "./enrollment.ts";
import { FleetFilter, fleetStates } from "./fleet.ts";

/** Decided by the last heartbeat; `never` until the first one. */
export const NodeConnection = z.enum(["online", "stale", "offline", "never"]);
export type NodeConnection = z.infer<typeof NodeConnection>;

/** How the agent is doing, by the worst cause that concerns it. */
export const NodeAgentStatus = z.enum([
  "healthy",
  "stale",
  "auth_failed",
  "api_unreachable",
  "task_result_failed",
  "unknown",
]);
export type NodeAgentStatus = z.infer<typeof NodeAgentStatus>;

export const NodeLink = z.enum(["stream", "poll"]);
export type NodeLink = z.infer<typeof NodeLink>;

/** One of the independent causes of a node's state, with what to do. Its explanation has the evidence. */
export const Attention = z.strictObject({
  code: z.string().describe("What was observed."),
  reason: z.string().describe("The cause that it was classified as; often the same."),
  ...reasonFields,
  confidence: z.enum(causeConfidences),
  user_state: z.enum(userStates),
  since: Time.describe("When the first of its evidence was observed."),
  /** Where the chain between agent and server, or between a browser and a shell, is broken; null: not known to this server. */
  hop: z.enum([...new Set([...hops, ...terminalHops])]).nullable(),
  /** What exactly is broken there. */
  hop_detail: z.enum(hopDetails).nullable(),
  /** What alarms call it. */
  signal: z.string().nullable(),
  /** Who can repair it: the operator of the host, of the network, or of the server. */
  owner: z.enum(nodeOwners),
  message: z.string(),
  next_step: z.string(),
  /** Finds the same event in the audit trail and in the logs; null: nothing is recorded under an id of its own. */
  correlation_id: z.string().nullable(),
});

export const Node = z.strictObject({
  id: Id,
  name: z.string(),
  status: NodeStatus,
  status_reason: z.string().nullable().describe("For operators of the node; null to everybody else."),
  connection: NodeConnection,
  heartbeat_at: Time.nullable(),
  created_at: Time,
  agent_version: z.string().nullable(),
  os: z.string().nullable(),
  arch: z.string().nullable(),
  capabilities: z.array(z.string()),
  running_tasks: z.int().nullable().describe("Of all tenants. For operators of the node; null to everybody else."),
  agent_status: NodeAgentStatus.nullable().describe("For operators of the node; null to everybody else."),
  user_state: z
    .enum(userStates)
    .nullable()
    .describe(
      "What an affected allocation shows, unless evidence of its own says more. For operators of the node.",
    ),
  layers: Layers.nullable().describe("For operators of the node; null to everybody else."),
  attention: z
    .array(Attention)
    .describe("Independent of each other, worst first. For operators of the node; empty for everybody else."),
  cause_pending: z
    .boolean()
    .describe("The node went offline, or came back, and its evidence has not been classified since."),
});
export type Node = z.infer<typeof Node>;

export const NodeDetail = Node.extend({
  facts: HostFacts.nullable(),
  instance_id: z.string().nullable(),
  boot_id: z.string().nullable(),
  agent_started_at: Time.nullable(),
  /** How the agent is connected; null: it is not. A `stream` stays open, `poll` is a held request after the other. */
  link: NodeLink.nullable(),
  /** When its stream was opened; null without one. */
  link_since: Time.nullable(),
  /** Positive: the node's clock is ahead. */
  clock_skew_seconds: z.number().nullable(),
  unsent_results: z.int().nullable(),
  certificate: z
    .strictObject({
      serial: z.string(),
      not_before: Time,
      not_after: Time,
      renewal_due_at: Time.nullable(),
      revoked_at: Time.nullable(),
    })
    .nullable(),
  /** The newest that the node has and that works; null: none, so without its certificate it needs an operator. */
  recovery_token: z.strictObject({ seq: z.int(), issued_at: Time, expires_at: Time }).nullable(),
  profile: z.strictObject({ name: z.string(), version: z.int() }).nullable(),
  /** As its agent last reported it; null: it did not. */
  setup: AgentSetup.nullable(),
  /** The address on record, which is the one last reported. */
  address: z.string().nullable(),
  /** As an operator set it, otherwise as the agent reports it. */
  provider: z.string().nullable(),
  network_side: z.string().nullable(),
  /** The result of the last health probe, whoever requested it. */
  health: z.strictObject({ observed_at: Time, host: HostHealth }).nullable(),
});
export type NodeDetail = z.infer<typeof NodeDetail>;

const params = z.strictObject({ node_id: Id });

/** How a listing narrows nodes down by state: those of the fleet, and retired ones, which have left it. */
export const NodeStateFilter = z.enum([...fleetStates, "not_fine", "present", "retired"]);
export type NodeStateFilter = z.infer<typeof NodeStateFilter>;

export const listNodes = endpoint({
  name: "listNodes",
  noun: "nodes",
  method: "GET",
  path: "/v1/nodes",
  summary: "List the organization's nodes",
  access: { scope: "nodes:read" },
  description:
    "Without `state` or `status`, retired nodes are listed too. Retired nodes are found by name and id only, not by " +
    "what their agents reported.",
  query: PageQuery.extend({
    name: Text.max(64).optional().describe("Only the node with exactly this name."),
    status: NodeStatus.optional(),
    ...FleetFilter.shape,
    state: NodeStateFilter.optional().describe(`${FleetFilter.shape.state.description} \`retired\`.`),
    order: z
      .enum(["newest", "worst"])
      .default("newest")
      .describe("`worst`: by severity, then by how long it lasts; retired nodes are left out."),
  }),
  answer: pageOf(Node).extend({
    total: z.int().describe("Number of matching nodes on all pages."),
  }),
});

export const getNode = endpoint({
  name: "getNode",
  noun: "nodes",
  method: "GET",
  path: "/v1/nodes/{node_id}",
  summary: "Read a node: host, heartbeat, certificate",
  access: { scope: "nodes:read" },
  params,
  answer: NodeDetail,
});

export const updateNode = endpoint({
  name: "updateNode",
  noun: "nodes",
  method: "PATCH",
  path: "/v1/nodes/{node_id}",
  summary: "Rename a node, or set its provider and network side",
  description: "What is set here wins over what the agent reports; null returns to that.",
  access: { scope: "nodes:write" },
  action: "node.update",
  params,
  body: z
    .strictObject({
      name: NodeName.optional(),
      provider: NodeLabel.nullable().optional(),
      network_side: NodeLabel.nullable().optional(),
    })
    .refine((body) => Object.keys(body).length > 0, "name, provider or network_side is required"),
  answer: NodeDetail,
  errors: ["name_taken"],
});

/** What an operator does to a node's lifecycle. */
export const NodeChange = z.enum(["drain", "fence", "reactivate", "revoke", "retire"]);
export type NodeChange = z.infer<typeof NodeChange>;

export const changeNode = endpoint({
  name: "changeNode",
  noun: "nodes",
  method: "POST",
  path: "/v1/nodes/{node_id}/changes",
  summary: "Drain, quarantine (`fence`), reactivate, revoke or retire a node",
  description:
    "`drain`: no new tasks, running ones finish. `fence`: quarantine, no tasks. `reactivate`: tasks again. " +
    "`revoke`: its certificates are rejected immediately; it needs a new token. `retire`: the same, and it cannot be undone.",
  access: { scope: "nodes:write" },
  action: "node.change",
  params,
  body: z.strictObject({ change: NodeChange, reason: Text.max(200).optional() }),
  answer: NodeDetail,
  errors: ["node_change_refused"],
});

export const resolveClone = endpoint({
  name: "resolveClone",
  noun: "nodes",
  method: "POST",
  path: "/v1/nodes/{node_id}/clone-resolution",
  summary: "Decide which of two machines with one identity keeps the node",
  description:
    "Revokes everything that both machines have: the node's certificates and tokens. The answer is a token with which the " +
    "machine that is kept enrolls with a new key. The node stays quarantined until it is reactivated, and the other machine " +
    "must be reimaged.",
  access: { scope: "nodes:write" },
  action: "node.resolve_clone",
  creates: true,
  params,
  body: z.strictObject({
    keep: z.int().positive().describe("The `holder` in the node's explanation, under `clone`."),
  }),
  answer: NewEnrollmentToken,
  errors: ["ca_unavailable", "node_change_refused"],
});

export const listNodeDiagnostics = endpoint({
  name: "listNodeDiagnostics",
  noun: "nodes",
  method: "GET",
  path: "/v1/nodes/{node_id}/diagnostics",
  summary: "List the last diagnostic records of the node's agent, newest first",
  access: { scope: "nodes:diagnose" },
  params,
  answer: z.strictObject({ items: z.array(DiagnosticRecord) }),
});
