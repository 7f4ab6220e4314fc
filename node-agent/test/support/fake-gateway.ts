// The gateway's node-facing side for tests of the agent: real mutual TLS, real WebSockets, and nobody
// behind it but the test, which is the client of every terminal.

import { X509Certificate } from "node:crypto";
import type { IncomingMessage } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { gatewayListeners, LISTENER_HEADER } from "@holdfast/contracts/headers";
import { type GatewayFrame, type NodeFrame, readNodeFrame } from "@holdfast/contracts/terminal/frames";
import { expect } from "vitest";
import WebSocket, { WebSocketServer } from "ws";
import type { FakeAuthority } from "../../../testkit/agent/fake-authority.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";

export type FakeStream = {
  sessionId: string;
  headers: IncomingMessage["headers"];
  serial: string;
  resumed: boolean;
  frames: NodeFrame[];
  /** Output of the present attachment. */
  output: Buffer[];
  text(): string;
  bytes(): number;
  send(frame: GatewayFrame): void;
  attach(more?: Partial<GatewayFrame & { type: "attach" }>): Promise<NodeFrame & { type: "attached" }>;
  type(input: string | Buffer): void;
  /** Acknowledges whatever comes, as a client does. */
  acknowledgeAll(): void;
  frame<T extends NodeFrame["type"]>(type: T): Promise<NodeFrame & { type: T }>;
  /** Reads and answers nothing more, but stays connected. */
  hang(): void;
  /** Without a word, as a network does. */
  drop(): void;
  close(): void;
  closed(): boolean;
};

/** `isOther`: as another listener of the same installation answers. */
type Refusal = { status: number; body: string; isOther?: true } | "reset" | "silence" | undefined;

export type FakeGateway = {
  url: string;
  streams: FakeStream[];
  /** Asked before each stream. */
  refuse: (sessionId: string) => Refusal | Promise<Refusal>;
  /** The newest of this session, once it is there. */
  stream(sessionId: string, after?: FakeStream): Promise<FakeStream>;
  stop(): Promise<void>;
  start(): Promise<void>;
};

export async function startFakeGateway(authority: FakeAuthority): Promise<FakeGateway> {
  const sockets = new Set<Duplex>();
  const webSockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: 1024 * 1024 });
  let server: https.Server | undefined;
  let port = 0;
  const gateway: FakeGateway = {
    url: "",
    streams: [],
    refuse: () => undefined,
    async stream(sessionId, after) {
      const newest = () => gateway.streams.findLast((one) => one.sessionId === sessionId && one !== after);
      await expect.poll(newest, { interval: 5 }).toBeDefined();
      return newest() as FakeStream;
    },
    async stop() {
      const closing = server;
      server = undefined;
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => (closing ? closing.close(resolve) : resolve(undefined)));
    },
    async start() {
      server = https.createServer({ ...(await authority.server()), requestCert: true, rejectUnauthorized: false });
      server.on("connection", (socket) => {
        sockets.add(socket);
        socket.once("close", () => sockets.delete(socket));
      });
      server.on("upgrade", upgrade);
      await new Promise<void>((resolve) => server?.listen(port, "127.0.0.1", resolve));
      port = (server.address() as AddressInfo).port;
      gateway.url = `https://127.0.0.1:${port}`;
    },
  };

  const upgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const [, sessionId = ""] = /^\/internal\/v1\/nodes\/[^/]+\/terminals\/([^/]+)$/.exec(request.url ?? "") ?? [];
    const presented = (request.socket as TLSSocket).getPeerX509Certificate();
    const leaf = presented && new X509Certificate(presented.raw);
    const refusal =
      (await gateway.refuse(sessionId)) ??
      (leaf && authority.hasIssued(leaf)
        ? undefined
        : { status: 401, body: JSON.stringify({ code: "certificate_missing", message: "No certificate." }) });
    if (refusal === "silence") return;
    if (refusal === "reset") return void socket.destroy();
    if (refusal) {
      const { status, body, isOther } = refusal;
      const listener = `${LISTENER_HEADER}: ${isOther ? gatewayListeners.public : gatewayListeners.node}`;
      const head = `${listener}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close`;
      socket.end(`HTTP/1.1 ${status} No\r\n${head}\r\n\r\n${body}`);
      return;
    }
    webSockets.handleUpgrade(request, socket, head, (accepted) => {
      const serial = leaf?.serialNumber.toLowerCase() ?? "";
      const resumed = (request.socket as TLSSocket).isSessionReused();
      gateway.streams.push(streamOver(accepted, { sessionId, headers: request.headers, serial, resumed }));
    });
  };

  await gateway.start();
  atEnd(() => gateway.stop());
  return gateway;
}

function streamOver(
  socket: WebSocket,
  about: Pick<FakeStream, "sessionId" | "headers" | "serial" | "resumed">,
): FakeStream {
  let received = 0;
  let attachments = 0;
  let acknowledges = false;
  const stream: FakeStream = {
    ...about,
    frames: [],
    output: [],
    text: () => Buffer.concat(stream.output).toString(),
    bytes: () => received,
    send: (frame) => socket.send(JSON.stringify(frame)),
    async attach(more = {}) {
      attachments += 1;
      const attachment = attachments;
      stream.send({ type: "attach", attachment, from: null, cols: 80, rows: 24, ...more });
      const find = () => stream.frames.find((one) => one.type === "attached" && one.attachment === attachment);
      await expect.poll(find, { interval: 5 }).toBeDefined();
      return find() as NodeFrame & { type: "attached" };
    },
    type: (input) => socket.send(Buffer.from(input)),
    acknowledgeAll() {
      acknowledges = true;
      stream.send({ type: "ack", bytes: received });
    },
    async frame(type) {
      const find = () => stream.frames.findLast((one) => one.type === type);
      await expect.poll(find, { interval: 5 }).toBeDefined();
      return find() as NodeFrame & { type: typeof type };
    },
    hang: () => socket.pause(),
    drop: () => socket.terminate(),
    close: () => socket.close(1012),
    closed: () => socket.readyState === WebSocket.CLOSED,
  };
  socket.on("error", () => {});
  socket.on("message", (data, isBinary) => {
    if (isBinary) {
      stream.output.push(data as Buffer);
      received += (data as Buffer).length;
      if (acknowledges) stream.send({ type: "ack", bytes: received });
      return;
    }
    const frame = readNodeFrame(data.toString());
    if (!frame) throw new Error(`the agent sent ${data}`);
    if (frame.type === "attached") {
      stream.output = [];
      received = 0;
    }
    stream.frames.push(frame);
  });
  return stream;
}
