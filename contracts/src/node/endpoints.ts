// The node-facing API, served on its own listener only. Every request is made by an agent that presents
// its certificate; the node in the path must be the node in the certificate.

import { z } from "zod";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { AgentPairing } from "../endpoints/agents.ts";
import { AgentCapabilities } from "../execution/frames.ts";
import { AnyText, Id } from "../fields.ts";
import { IDENTITY_PATH, WAIT_PATH } from "./limits.ts";
import {
  DiagnosticsAnswer,
  DiagnosticsReport,
  HeartbeatAnswer,
  HeartbeatRequest,
  IssuedCertificate,
  ProgressAnswer,
  ProgressReport,
  RenewRequest,
  ResultAnswer,
  ResultReport,
  ResultsAnswer,
  ResultsReport,
  WaitAnswer,
  WaitQuery,
} from "./protocol.ts";

const node = z.strictObject({ node_id: Id });
const task = z.strictObject({ node_id: Id, task_id: Id });

export const waitForTasks = endpoint({
  name: "waitForTasks",
  noun: "node_api",
  method: "GET",
  path: WAIT_PATH,
  summary: "Take the next tasks; held open until there is one",
  description: "With `probe=true` nothing is taken and no connection is counted; it is held for `wait` seconds.",
  access: "node",
  params: node,
  query: WaitQuery,
  answer: WaitAnswer,
});

export const reportProgress = endpoint({
  name: "reportProgress",
  noun: "node_api",
  method: "POST",
  path: "/internal/v1/nodes/{node_id}/tasks/{task_id}/progress",
  summary: "Tell how far a task is; renews its lease",
  access: "node",
  params: task,
  body: ProgressReport,
  answer: ProgressAnswer,
});

export const reportResult = endpoint({
  name: "reportResult",
  noun: "node_api",
  method: "POST",
  path: "/internal/v1/nodes/{node_id}/tasks/{task_id}/result",
  summary: "Deliver one result",
  access: "node",
  params: task,
  body: ResultReport,
  answer: ResultAnswer,
  errors: ["result_too_large"],
});

export const reportResults = endpoint({
  name: "reportResults",
  noun: "node_api",
  method: "POST",
  path: "/internal/v1/nodes/{node_id}/results",
  summary: "Deliver several results",
  access: "node",
  params: node,
  body: ResultsReport,
  answer: ResultsAnswer,
  errors: ["result_too_large"],
});

export const sendHeartbeat = endpoint({
  name: "sendHeartbeat",
  noun: "node_api",
  method: "POST",
  path: "/internal/v1/nodes/{node_id}/heartbeat",
  summary: "Tell how the node is; renews the leases it names",
  access: "node",
  params: node,
  body: HeartbeatRequest,
  answer: HeartbeatAnswer,
});

export const renewCertificate = endpoint({
  name: "renewCertificate",
  noun: "node_api",
  method: "POST",
  path: "/internal/v1/nodes/{node_id}/renew",
  summary: "A new certificate for a new key, on the strength of the present one",
  access: "node",
  params: node,
  body: RenewRequest,
  answer: IssuedCertificate.extend({ trust_bundle: z.array(z.string()) }),
  errors: ["csr_invalid", "ca_unavailable", "ca_ingress_mismatch"],
});

export const sendDiagnostics = endpoint({
  name: "sendDiagnostics",
  noun: "node_api",
  method: "POST",
  path: "/internal/v1/nodes/{node_id}/diagnostics",
  summary: "Deliver the host's diagnostic records",
  access: "node",
  params: node,
  body: DiagnosticsReport,
  answer: DiagnosticsAnswer,
});

/** Instead of a pairing token, where the policy `node.executions` allows it. Every call replaces the agent token. */
export const pairNode = endpoint({
  name: "pairNode",
  noun: "node_api",
  method: "POST",
  path: "/internal/v1/nodes/{node_id}/execution-agent",
  summary: "An agent token for this node, on the strength of its certificate",
  access: "node",
  params: node,
  body: z.strictObject({ agentVersion: AnyText.max(64), capabilities: AgentCapabilities }),
  answer: AgentPairing,
  errors: ["node_executions_off", "node_agent_revoked", "node_not_active", "agent_gateway_missing"],
});

/** A POST: what is taken is not for caches, and a lost connection is not that of a poll. */
export const takeVmUserData = endpoint({
  name: "takeVmUserData",
  noun: "node_api",
  method: "POST",
  path: "/internal/v1/nodes/{node_id}/vms/{vm_id}/user-data",
  summary: "Take the user data of a VM that this node launches now, which contains secrets",
  access: "node",
  params: z.strictObject({ node_id: Id, vm_id: Id }),
  answer: z.strictObject({ user_data: z.string().nullable().describe("Null: there is none for this node.") }),
});

/** Also on the gateway's node-facing listener. Takes and changes nothing. */
export const checkIdentity = endpoint({
  name: "checkIdentity",
  noun: "node_api",
  method: "GET",
  path: IDENTITY_PATH,
  summary: "Whether the certificate is accepted",
  access: "node",
  params: node,
  answer: z.strictObject({ node_id: Id }),
});

/** Errors that the identity hook gives before any of these is reached. */
export const nodeApiEndpoints: readonly Endpoint[] = [
  waitForTasks,
  reportProgress,
  reportResult,
  reportResults,
  sendHeartbeat,
  renewCertificate,
  sendDiagnostics,
  pairNode,
  takeVmUserData,
  checkIdentity,
];
