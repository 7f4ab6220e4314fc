// Agents and workers at a gateway, whose every frame and request is the test's.

import { DISPATCH_TOKEN_HEADER, type DispatchBody, dispatchPaths } from "@holdfast/contracts/execution/dispatch";
import type {
  AgentFrame,
  CancelFrame,
  ErrorFrame,
  GatewayDrainFrame,
  HelloFrame,
  PongFrame,
  ResultAckFrame,
  SignedExecuteFrame,
  WelcomeFrame,
} from "@holdfast/contracts/execution/frames";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { ClientOptions } from "ws";
import type { ModelAgent } from "./executions.ts";
import { DISPATCH_TOKEN, dial, type Peer, type TestGateway } from "./gateway.ts";

type ToAgent =
  | PongFrame
  | SignedExecuteFrame
  | WelcomeFrame
  | ResultAckFrame
  | CancelFrame
  | GatewayDrainFrame
  | ErrorFrame;
export type TestAgent = Peer<AgentFrame | object, ToAgent>;

export function dialAgent(
  gateway: Pick<TestGateway, "agentUrl">,
  token: string | undefined,
  options: ClientOptions = {},
) {
  const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return dial<AgentFrame | object, ToAgent>(gateway.agentUrl, [], {
    ...options,
    headers: { ...authorization, ...options.headers },
  });
}

export function helloOf(changes: Partial<HelloFrame> = {}): HelloFrame {
  return {
    type: "hello",
    agentVersion: "1.0.0",
    name: "worker-1",
    capabilities: { kinds: ["connector.action", "agent.execute"] },
    protocolVersion: 1,
    ...changes,
  };
}

/** An agent that speaks all of the protocol, and is welcome. */
export async function connectAgent(
  gateway: Pick<TestGateway, "agentUrl">,
  agent: ModelAgent,
  hello: Partial<HelloFrame> = {},
): Promise<TestAgent> {
  const dialled = await dialAgent(gateway, agent.token);
  if ("refused" in dialled) throw new Error(`refused: ${dialled.refused.body}`);
  dialled.peer.send(helloOf(hello));
  await dialled.peer.next("welcome");
  return dialled.peer;
}

export function dispatchBody(orgId: string, changes: Partial<DispatchBody> = {}): DispatchBody {
  return {
    organizationId: orgId,
    requestedByUserId: uuidv7(),
    runId: uuidv7(),
    workflowId: uuidv7(),
    nodeId: "step-1",
    nodeType: "connector.action",
    attemptCount: 1,
    kind: "connector.action",
    payload: { connectorId: "echo", actionId: "say", input: "hello" },
    ...changes,
  };
}

export type Answered = { status: number; body: Record<string, unknown>; text: string };

/** As a worker sends it. */
export async function ask(
  gateway: Pick<TestGateway, "internalUrl">,
  path: string,
  options: { body?: unknown; token?: string | null; headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Answered> {
  const { body, token = DISPATCH_TOKEN, signal } = options;
  const response = await fetch(`${gateway.internalUrl}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      ...(token === null ? {} : { [DISPATCH_TOKEN_HEADER]: token }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...options.headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    ...(signal ? { signal } : {}),
  });
  const text = await response.text();
  return { status: response.status, body: JSON.parse(text) as Record<string, unknown>, text };
}

export function dispatch(gateway: Pick<TestGateway, "internalUrl">, body: unknown): Promise<Answered> {
  return ask(gateway, dispatchPaths.dispatch, { body });
}

export function dispatchAsync(gateway: Pick<TestGateway, "internalUrl">, body: unknown): Promise<Answered> {
  return ask(gateway, dispatchPaths.dispatchAsync, { body });
}

export function resultOf(gateway: Pick<TestGateway, "internalUrl">, requestId: string): Promise<Answered> {
  return ask(gateway, `${dispatchPaths.results}/${encodeURIComponent(requestId)}`);
}
