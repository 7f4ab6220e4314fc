// The node-facing API, served on its own listener only. Every request is made by an agent that presents
// its certificate; the node in the path must be the node in the certificate.

import { z } from "zod";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { Id } from "../fields.ts";
import { IDENTITY_PATH } from "./limits.ts";
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
  path: "/internal/v1/nodes/{node_id}/tasks/wait",
  summary: "Take the next tasks; held open until there is one",
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
  checkIdentity,
];
