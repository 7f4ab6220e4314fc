// What a step does: a request to an agent through the gateway, a request of the worker, or nothing but its output.

import { type DispatchBody, executionTimeout, requestIdOf } from "@holdfast/contracts/execution/dispatch";
import * as connectors from "@holdfast/workflows/connectors/all";
import type { Connector } from "@holdfast/workflows/connectors/connector";
import { millisecondsOf, type Node } from "@holdfast/workflows/document/schema";
import type { FailedAttempt } from "@holdfast/workflows/run/retry";
import type { ClaimedRun } from "../runs/transitions/claim.ts";

export type StepNode = Extract<Node, { type: "connector.action" | "agent.execute" | "http.request" }>;

export function isStep(node: Node): node is StepNode {
  return node.type === "connector.action" || node.type === "agent.execute" || node.type === "http.request";
}

export const runsOnAgent = (node: StepNode) =>
  (node.execution?.mode ?? (node.type === "agent.execute" ? "node" : "cloud")) === "node";

/** It has no effect outside the worker, unless its author says so: that it begins need not be on the disk before. */
export const staysInside = (node: StepNode) =>
  node.type === "connector.action" &&
  !runsOnAgent(node) &&
  node.secret === undefined &&
  node.effect === undefined &&
  !usesNetwork(node.connector);

const usesNetwork = (name: string) =>
  (Object.hasOwn(connectors, name) ? (connectors as Record<string, Connector>)[name]?.usesNetwork : undefined) ??
  true;

export type StepOutcome = { output: unknown } | FailedAttempt;

/** What an attempt may take. */
export function timeoutOf(node: StepNode, usualMs: number): number {
  const wanted = node.timeout === undefined ? usualMs : millisecondsOf(node.timeout);
  return Math.min(Math.max(wanted, executionTimeout.least), executionTimeout.most);
}

type Attempt = { run: ClaimedRun; id: string; node: StepNode; attempt: number; input: unknown; timeoutMs: number };

/** The same for every repetition of an attempt: the request id follows from run, node and attempt. */
export function dispatchOf({ run, id, node, attempt, input, timeoutMs }: Attempt): DispatchBody {
  const selector = node.execution?.selector ?? {};
  const kind = node.type === "agent.execute" ? "agent.execute" : "connector.action";
  return {
    ...{ organizationId: run.org_id, requestedByUserId: run.user_id, runId: run.id, workflowId: run.workflow_id },
    ...{ nodeId: id, nodeType: node.type, attemptCount: attempt, kind, timeoutMs },
    // It may wait for an agent as long as it may run.
    waitMs: timeoutMs,
    payload: payloadOf({ run, id, node, attempt, input }),
    ...(node.secret === undefined ? {} : { secretName: node.secret }),
    ...(selector.agentId === undefined ? {} : { selectorAgentId: selector.agentId }),
    ...(selector.tag === undefined ? {} : { selectorTag: selector.tag }),
    ...(selector.group === undefined ? {} : { selectorTag: `group:${selector.group}` }),
  };
}

export const requestIdFor = (run: { id: string }, node: string, attempt: number) =>
  requestIdOf({ runId: run.id, nodeId: node, attemptCount: attempt });

function payloadOf({ run, id, node, attempt, input }: Omit<Attempt, "timeoutMs">): Record<string, unknown> {
  const values = (input ?? {}) as { input?: unknown; script?: string; env?: Record<string, string> };
  if (node.type === "connector.action") {
    return { connectorId: node.connector, actionId: node.action, input: values.input ?? null };
  }
  const { shell, sandbox } = node as Extract<StepNode, { type: "agent.execute" }>;
  const { image, ...rest } = sandbox ?? {};
  const task = values.script && {
    ...{ type: "shell", script: String(values.script) },
    ...(shell ? { shell } : {}),
    ...(values.env ? { env: texts(values.env) } : {}),
  };
  const config = {
    ...(task ? { task } : {}),
    ...(sandbox ? { sandbox: { ...rest, ...(image ? { docker: { image } } : {}) } } : {}),
  };
  const described = { id, type: node.type, config };
  return { nodeId: id, node: described, runId: run.id, workflowId: run.workflow_id, attemptCount: attempt };
}

const texts = (env: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(env).map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]),
  );
