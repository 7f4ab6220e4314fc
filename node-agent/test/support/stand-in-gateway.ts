// A gateway for tests of the agent that runs steps: real HTTP for pairing and real WebSockets, held to the contract. Every frame
// of the agent is checked strictly, and one that is not of the contract fails the test. What is sent is up to the test.

import { generateKeyPairSync, type KeyObject, randomUUID } from "node:crypto";
import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import {
  AgentFrame,
  EXECUTION_PATHS,
  type HelloFrame,
  type ResultAckFrame,
  type ResultFrame,
  type SignedExecuteFrame,
  type SignedExecution,
} from "@holdfast/contracts/execution/frames";
import type { SignedKeySet, VerifierKeys } from "@holdfast/contracts/node/trust";
import { canonicalJson } from "@holdfast/kit/canonical-json";
import { type SigningKey, signDetached } from "@holdfast/kit/detached-jws";
import { signStatement } from "@holdfast/kit/signed-statement";
import { expect } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";

export type Frame<T extends AgentFrame["type"]> = Extract<AgentFrame, { type: T }>;

export type AgentSocket = {
  hello: HelloFrame | undefined;
  frames: AgentFrame[];
  of<T extends AgentFrame["type"]>(type: T): Frame<T>[];
  send(frame: object): void;
  close(code: number): void;
  /** Without a word. */
  cut(): void;
  closed(): number | undefined;
};

export type TestKey = SigningKey & { jwk: VerifierKeys["keys"][number] };

export function makeKey(kid: string): TestKey {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return { kid, privateKey, jwk: jwkOf(kid, publicKey) };
}

/** `by`: keys of the set before it. */
export function keySetOf(version: number, keys: readonly TestKey[], by: readonly TestKey[]): SignedKeySet {
  const content = { keys: keys.map(({ jwk }) => jwk) };
  return signStatement([...by], { kind: "task_key_set", version, content });
}

export type Order = Partial<Omit<SignedExecuteFrame, "type" | "signature">> & { key?: TestKey };

export type StandInGateway = Awaited<ReturnType<typeof startStandInGateway>>;

export async function startStandInGateway(options: { tls?: { cert: string; key: string } } = {}) {
  const ids = { agentId: randomUUID(), organizationId: randomUUID(), userId: randomUUID() };
  const agentToken = `${ids.organizationId}.hfx_${"t".repeat(40)}`;
  const key = makeKey("first");
  const sockets: AgentSocket[] = [];
  const results: ResultFrame[] = [];
  const pairings: unknown[] = [];
  const violations: string[] = [];
  const tokens = new Map<string, "fresh" | "expired">();
  const below = new Set<Duplex>();
  let server: http.Server | undefined;
  let port = 0;

  const gateway = {
    ...ids,
    agentToken,
    key,
    keySets: [keySetOf(1, [key], [key])],
    leaseMs: 60_000,
    sockets,
    results,
    pairings,
    /** Upgrades that were asked for, with what they got. */
    upgrades: [] as number[],
    /** Status instead of an upgrade. */
    refuse: undefined as number | undefined,
    welcomes: true,
    answersPings: true,
    /** What a result is answered with; undefined: nothing. */
    verdict: "accepted" as ResultAckFrame["verdict"] | undefined,
    violations,
    scheme: options.tls ? "s" : "",
    get url(): string {
      return `http${gateway.scheme}://127.0.0.1:${port}`;
    },
    get wsUrl(): string {
      return `ws${gateway.scheme}://127.0.0.1:${port}/ws`;
    },
    credentials: () => ({
      ...{ agentId: ids.agentId, agentToken, organizationId: ids.organizationId },
      ...{ gatewayWsUrl: gateway.wsUrl, apiBaseUrl: gateway.url, name: "test-agent", agentVersion: "1.0.0" },
      keySet: { version: 1, keys: [key.jwk] },
    }),
    pairingToken(state: "fresh" | "expired" = "fresh"): string {
      const token = `${ids.organizationId}.hfx_${randomUUID()}`;
      tokens.set(token, state);
      return token;
    },
    order(order: Order = {}): SignedExecuteFrame {
      const { key: signer = key, ...others } = order;
      const frame = {
        requestId: `${randomUUID()}:step:1`,
        ...{ generation: 1, agentId: ids.agentId, organizationId: ids.organizationId, userId: ids.userId },
        kind: "connector.action" as const,
        payload: { connectorId: "echo", actionId: "echo", input: { said: "hello" } } as unknown,
        ...{
          timeoutMs: 60_000,
          expiresAt: new Date(Date.now() + 60_000).toISOString(),
          correlationId: randomUUID(),
        },
        ...others,
      };
      return { type: "execute", ...frame, signature: signatureOf(frame, signer) };
    },
    shell(script: string, order: Order & { config?: object; task?: object } = {}): SignedExecuteFrame {
      const { config, task, ...others } = order;
      const node = {
        id: "n",
        type: "agent.execute",
        config: { task: { type: "shell", script, ...task }, ...config },
      };
      return gateway.order({ kind: "agent.execute", payload: { nodeId: "n", node }, ...others });
    },
    /** The newest socket that has said hello. */
    async socket(after?: AgentSocket): Promise<AgentSocket> {
      const newest = () => sockets.findLast((one) => one.hello && one.closed() === undefined);
      await expect.poll(() => newest() !== undefined && newest() !== after).toBe(true);
      return newest() as AgentSocket;
    },
    resultOf: (requestId: string): ResultFrame | undefined => results.find((one) => one.requestId === requestId),
    async result(requestId: string): Promise<ResultFrame> {
      await expect.poll(() => gateway.resultOf(requestId)).toBeDefined();
      return gateway.resultOf(requestId) as ResultFrame;
    },
    async start(): Promise<void> {
      server = options.tls ? https.createServer(options.tls, onRequest) : http.createServer(onRequest);
      server.on("upgrade", onUpgrade);
      server.on("connection", (socket: Duplex) => {
        below.add(socket);
        socket.once("close", () => below.delete(socket));
      });
      await new Promise<void>((resolve) => server?.listen(port, "127.0.0.1", resolve));
      port = (server.address() as AddressInfo).port;
    },
    /** As a process that was killed. */
    async stop(): Promise<void> {
      const stopped = new Promise((resolve) => server?.close(resolve));
      for (const socket of below) socket.destroy();
      await stopped;
    },
  };

  const webSockets = new WebSocketServer({ noServer: true, maxPayload: 16 * 1024 * 1024 });
  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const known = request.headers.authorization === `Bearer ${agentToken}`;
    const path = new URL(request.url ?? "", gateway.url).pathname;
    const status = gateway.refuse ?? (known ? undefined : 401);
    if (!EXECUTION_PATHS.includes(path as "/ws")) violations.push(`upgrade at ${path}`);
    gateway.upgrades.push(status ?? 101);
    if (status === undefined) webSockets.handleUpgrade(request, socket, head, onSocket);
    else socket.end(`HTTP/1.1 ${status} Refused\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
  };

  const onSocket = (socket: WebSocket) => {
    let closed: number | undefined;
    const one: AgentSocket = {
      hello: undefined,
      frames: [],
      of: (type) => one.frames.filter((frame) => frame.type === type) as never,
      send: (frame) => socket.send(JSON.stringify(frame)),
      close: (code) => socket.close(code),
      cut: () => socket.terminate(),
      closed: () => closed,
    };
    socket.once("close", (code) => {
      closed = code;
    });
    socket.on("message", (data) => {
      const checked = AgentFrame.safeParse(JSON.parse(data.toString()));
      if (!checked.success) return violations.push(`${data}: ${checked.error.message}`);
      if ((checked.data.type === "hello") !== (one.hello === undefined))
        violations.push("hello was not the first");
      one.frames.push(checked.data);
      onFrame(one, checked.data);
    });
    sockets.push(one);
  };

  const onFrame = (socket: AgentSocket, frame: AgentFrame) => {
    if (frame.type === "hello") {
      socket.hello = frame;
      const { agentId, organizationId } = ids;
      const newer = gateway.keySets.filter(({ version }) => version > (frame.keySetVersion ?? 0));
      if (!gateway.welcomes) return;
      socket.send({
        ...{ type: "welcome", protocolVersion: 1, agentId, organizationId, sessionId: randomUUID() },
        ...{ leaseMs: gateway.leaseMs, keySets: newer },
      });
    } else if (frame.type === "ping") {
      if (gateway.answersPings) socket.send({ type: "pong", ts: frame.ts });
    } else if (frame.type === "execute_result") {
      results.push(frame);
      const { requestId, generation } = frame;
      if (gateway.verdict) socket.send({ type: "result_ack", requestId, generation, verdict: gateway.verdict });
    }
  };

  const onRequest = async (request: IncomingMessage, response: http.ServerResponse) => {
    let text = "";
    for await (const part of request.setEncoding("utf8")) text += part;
    const answer = (status: number, body: object) => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (request.url !== "/v1/agents/pair" || request.method !== "POST") return answer(404, { code: "NOT_FOUND" });
    const body = JSON.parse(text) as { pairingToken: string };
    pairings.push(body);
    const state = tokens.get(body.pairingToken);
    tokens.delete(body.pairingToken);
    if (state === undefined) return answer(401, { code: "PAIRING_TOKEN_INVALID" });
    if (state === "expired") return answer(400, { code: "PAIRING_TOKEN_EXPIRED" });
    const { agentId, organizationId } = ids;
    answer(201, {
      agentId,
      agentToken,
      organizationId,
      gatewayWsUrl: gateway.wsUrl,
      keySet: gateway.keySets.at(-1),
    });
  };

  await gateway.start();
  atEnd(async () => {
    await gateway.stop();
    expect(violations).toEqual([]);
  });
  return gateway;
}

function signatureOf(frame: Omit<SignedExecuteFrame, "type" | "signature">, key: TestKey): string {
  const signed: SignedExecution = {
    purpose: "execution",
    request_id: frame.requestId,
    agent_id: frame.agentId,
    organization_id: frame.organizationId,
    user_id: frame.userId,
    kind: frame.kind,
    payload: frame.payload,
    timeout_ms: frame.timeoutMs,
    expires_at: frame.expiresAt,
  };
  return signDetached(key, canonicalJson(signed));
}

function jwkOf(kid: string, publicKey: KeyObject): VerifierKeys["keys"][number] {
  const { x = "" } = publicKey.export({ format: "jwk" });
  return { kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", kid, x };
}
