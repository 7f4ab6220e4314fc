// A real gateway over a stand-in api, and the two who meet in it: clients and nodes.

import { X509Certificate } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import {
  type ClientFrame,
  type GatewayFrame,
  type NodeFrame,
  nodeStreamPath,
  type ServerFrame,
  TERMINAL_PATH,
  TERMINAL_PROTOCOL,
  TOKEN_PROTOCOL,
  WRITER_PROTOCOL,
} from "@holdfast/contracts/terminal/frames";
import { readSettings } from "@holdfast/kit/settings";
import { uuidv7 } from "@holdfast/kit/uuid";
import { expect, vi } from "vitest";
import { type ClientOptions, WebSocket } from "ws";
import type { Authority } from "../../control-plane/src/identity/authority.ts";
import { readKeyRequest } from "../../control-plane/src/identity/requests.ts";
import { startGateway } from "../../gateway/src/main.ts";
import { gatewaySettings } from "../../gateway/src/settings.ts";
import { makeKeyRequest } from "../api/nodes.ts";
import { atEnd } from "../lifetime/at-end.ts";
import { startInside } from "../lifetime/start-inside.ts";
import { ORIGIN, SERVICE_TOKEN, type StandInApi } from "./api.ts";

export const DISPATCH_TOKEN = `hfg_${"d".repeat(43)}`;

export type TestGateway = {
  url: string;
  terminalUrl: string;
  nodeUrl: string;
  /** Of the internal listener. */
  internalUrl: string;
  /** For agents that run steps. */
  agentUrl: string;
  logged(): string;
  /** A metric's value with these labels, 0 when it is not there. */
  metric(name: string, label: string): Promise<number>;
  stop(): Promise<void>;
};

export async function startTestGateway(
  api: Pick<StandInApi, "url">,
  env: Record<string, string> = {},
): Promise<TestGateway> {
  const settings = readSettings(gatewaySettings, {
    HOLDFAST_GATEWAY_PORT: "0",
    HOLDFAST_NODE_TERMINAL_PORT: "0",
    HOLDFAST_API_INTERNAL_URL: api.url,
    HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN,
    HOLDFAST_GATEWAY_INTERNAL_PORT: "0",
    HOLDFAST_DISPATCH_TOKEN: DISPATCH_TOKEN,
    ...env,
  });
  const { ports, logged, stop } = await startInside("gateway", (log) => startGateway(settings, log));
  const url = `http://127.0.0.1:${ports["public"]}`;
  // On a busy machine it starts before it has found the api.
  if (settings.serviceToken !== undefined)
    await vi.waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200), 100_000);
  return {
    url,
    terminalUrl: `${url.replace("http", "ws")}${TERMINAL_PATH}`,
    nodeUrl: `https://127.0.0.1:${ports["node"]}`,
    internalUrl: `http://127.0.0.1:${ports["internal"]}`,
    agentUrl: `${url.replace("http", "ws")}/ws`,
    logged,
    async metric(name, label) {
      const page = await (await fetch(`${url}/metrics`)).text();
      const line = page.split("\n").find((one) => one.startsWith(`${name}{`) && one.includes(label));
      return Number(line?.split(" ").at(-1) ?? 0);
    },
    stop,
  };
}

/** One end of a WebSocket that remembers what it was sent. */
export type Peer<Sent, Received extends { type: string }> = {
  socket: WebSocket;
  send(frame: Sent): void;
  type(data: Buffer | string): void;
  frames: Received[];
  /** Bytes so far. */
  received(): Buffer;
  receivedBytes(): number;
  /** The next frame of this type that nobody has waited for yet. */
  next<T extends Received["type"]>(type: T): Promise<Extract<Received, { type: T }>>;
  /** Until these bytes are among those received. */
  until(bytes: string): Promise<void>;
  closed: Promise<{ code: number; reason: string }>;
};

export type TestClient = Peer<ClientFrame, ServerFrame>;
export type TestNodeStream = Peer<GatewayFrame | NodeFrame, GatewayFrame>;

function peerOf<Sent, Received extends { type: string }>(socket: WebSocket): Peer<Sent, Received> {
  const frames: Received[] = [];
  const chunks: Buffer[] = [];
  const taken = new Set<Received>();
  const changed = new Set<() => void>();
  socket.on("message", (data: Buffer, isBinary) => {
    if (isBinary) chunks.push(data);
    else frames.push(JSON.parse(data.toString()) as Received);
    for (const look of [...changed]) look();
  });
  socket.on("error", () => undefined);
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once("close", (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  const when = async <T>(find: () => T | undefined, what: string): Promise<T> => {
    const first = find();
    if (first !== undefined) return first;
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = find();
        if (found === undefined) return;
        changed.delete(look);
        resolve(found);
      };
      changed.add(look);
      void closed.then(({ code, reason }) =>
        reject(new Error(`closed with ${code} ${reason} before ${what}; got ${JSON.stringify(frames)}`)),
      );
    });
  };
  return {
    socket,
    frames,
    closed,
    send: (frame) => socket.send(JSON.stringify(frame)),
    type: (data) => socket.send(Buffer.from(data), { binary: true }),
    received: () => Buffer.concat(chunks),
    receivedBytes: () => chunks.reduce((sum, { length }) => sum + length, 0),
    next: (type) =>
      when(() => {
        const found = frames.find((frame) => frame.type === type && !taken.has(frame));
        if (found) taken.add(found);
        return found as Extract<Received, { type: typeof type }> | undefined;
      }, type),
    until: (bytes) =>
      when(() => (Buffer.concat(chunks).includes(bytes) ? true : undefined), bytes).then(() => undefined),
  };
}

export type Refusal = { status: number; code: string; headers: IncomingMessage["headers"]; body: string };

/** Opens, or tells with which answer it was refused. */
export async function dial<S, R extends { type: string }>(
  url: string,
  protocols: string[],
  options: ClientOptions,
): Promise<{ peer: Peer<S, R> } | { refused: Refusal }> {
  const socket = new WebSocket(url, protocols, { perMessageDeflate: false, ...options });
  const peer = peerOf<S, R>(socket);
  atEnd(() => socket.terminate());
  return new Promise((resolve, reject) => {
    socket.once("open", () => resolve({ peer }));
    socket.once("error", reject);
    socket.once("unexpected-response", (_request, response) => {
      void text(response).then((body) => {
        const { code } = JSON.parse(body) as { code: string };
        resolve({ refused: { status: response.statusCode ?? 0, code, headers: response.headers, body } });
      });
    });
  });
}

export async function connectClient(
  gateway: TestGateway,
  token: string,
  options: ClientOptions & { protocols?: string[]; writer?: string } = {},
): Promise<TestClient> {
  const dialled = await dialClient(gateway, token, options);
  if ("refused" in dialled) throw new Error(`refused: ${dialled.refused.body}`);
  return dialled.peer;
}

export function dialClient(
  gateway: TestGateway,
  token: string,
  { protocols, writer, ...options }: ClientOptions & { protocols?: string[]; writer?: string } = {},
) {
  const named = writer === undefined ? [] : [`${WRITER_PROTOCOL}${writer}`];
  const offered = protocols ?? [TERMINAL_PROTOCOL, `${TOKEN_PROTOCOL}${token}`, ...named];
  return dial<ClientFrame, ServerFrame>(gateway.terminalUrl, offered, { origin: ORIGIN, ...options });
}

export type NodeCertificate = { id: string; cert: string; key: string; ca: string[]; serial: string };

/** As enrollment would have given it, at the time given. */
export async function certificateFor(
  authority: Authority,
  nodeId: string = uuidv7(),
  at: Date = new Date(),
): Promise<NodeCertificate> {
  const { key, csr } = await makeKeyRequest();
  const { publicKey } = readKeyRequest(csr);
  const { chain, serial } = authority.issueToNode({ id: nodeId, publicKey }, at);
  return { id: nodeId, cert: chain, key, ca: [...authority.trustBundle], serial };
}

/** As another gateway would have got it, at the time given. */
export async function gatewayCertificate(authority: Authority, at: Date = new Date()): Promise<NodeCertificate> {
  const { key, csr } = await makeKeyRequest();
  const { publicKey } = readKeyRequest(csr);
  const service = { name: "gateway", instanceId: uuidv7() } as const;
  const { chain, serial } = authority.issueToService({ ...service, names: ["localhost"], publicKey }, at);
  return { id: service.instanceId, cert: chain, key, ca: [...authority.trustBundle], serial };
}

/** The certificate itself, in the form of the header in which it is forwarded. */
export function forwardedForm({ cert }: Pick<NodeCertificate, "cert">): string {
  return encodeURIComponent(new X509Certificate(cert).toString());
}

export function dialNode(
  gateway: TestGateway,
  place: { nodeId: string; sessionId: string },
  tls: Partial<NodeCertificate>,
  headers: Record<string, string> = {},
) {
  const { cert, key, ca } = tls;
  return dial<GatewayFrame | NodeFrame, GatewayFrame>(
    `${gateway.nodeUrl.replace("https", "wss")}${nodeStreamPath(place.nodeId, place.sessionId)}`,
    [],
    {
      ...(cert ? { cert } : {}),
      ...(key ? { key } : {}),
      ...(ca ? { ca } : {}),
      headers: { [INSTANCE_HEADER]: uuidv7(), [BOOT_HEADER]: "boot-1", ...headers },
      // Masks protect old proxies from browsers; the agent leaves them zero too.
      generateMask: () => undefined,
    },
  );
}

export async function connectNode(
  gateway: TestGateway,
  sessionId: string,
  node: NodeCertificate,
): Promise<TestNodeStream> {
  const dialled = await dialNode(gateway, { nodeId: node.id, sessionId }, node);
  if ("refused" in dialled) throw new Error(`refused: ${dialled.refused.body}`);
  return dialled.peer;
}

/** The node's part up to the first output: hello, then the answer to the attachment. */
export async function comeUp(
  stream: TestNodeStream,
  at: { offset?: number; end?: number; replay?: number; input?: number } = {},
): Promise<Extract<GatewayFrame, { type: "attach" }>> {
  const { offset = 0, end = offset, replay = 0, ...input } = at;
  stream.send({ type: "hello", offset, end });
  const attach = await stream.next("attach");
  const { attachment, from } = attach;
  stream.send({ type: "attached", attachment, offset: from ?? offset, replay, ...input });
  return attach;
}

export type OpenTerminal = {
  client: TestClient;
  stream: TestNodeStream;
  sessionId: string;
  correlationId: string;
};

/** A terminal that is ready, with both its peers. */
export async function openTerminal(
  { api, gateway, node }: { api: StandInApi; gateway: TestGateway; node: NodeCertificate },
  granted: Parameters<StandInApi["grant"]>[0] = {},
): Promise<OpenTerminal> {
  const { token, grant } = api.grant({ node_id: node.id, ...granted });
  const client = await connectClient(gateway, token);
  const stream = await connectNode(gateway, grant.session_id, node);
  await comeUp(stream);
  await client.next("ready");
  return { client, stream, sessionId: grant.session_id, correlationId: grant.correlation_id };
}
