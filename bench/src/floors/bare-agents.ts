// The other end of bare connections: held requests, or streams that send a heartbeat as often as an agent does and answer
// what is pushed to them. It is asked for them over a small HTTP port.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createSecureContext, connect as dial, type TLSSocket } from "node:tls";
import { HEARTBEAT_SECONDS } from "@holdfast/contracts/node/limits";
import { WebSocket } from "ws";
import type { AgentCredentials } from "./credentials.ts";

export type BareAgents = { port: number; credentials: AgentCredentials };

/** As an agent's heartbeat: how often, and about how long. */
const HEARTBEAT_MS = HEARTBEAT_SECONDS * 1000;
const heartbeat = JSON.stringify({ heartbeat: "x".repeat(1_000) });
/** Handshakes under way at a time. */
const AT_ONCE = 8;

const { port, credentials } = JSON.parse(process.env["BENCH_PEER"] ?? "") as BareAgents;
const secureContext = createSecureContext(credentials);
/** Handed on to `tls.connect`, also what the types of ws leave out. */
const streamOptions = { secureContext, perMessageDeflate: false };
const connections: (TLSSocket | WebSocket)[] = [];

async function hold(): Promise<void> {
  const socket = dial({ host: "127.0.0.1", port, secureContext });
  await once(socket, "secureConnect");
  socket.on("error", () => undefined);
  socket.write("GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
  connections.push(socket);
}

async function openStream(): Promise<void> {
  const stream = new WebSocket(`wss://127.0.0.1:${port}`, streamOptions);
  await once(stream, "open");
  stream.on("error", () => undefined);
  stream.on("message", (data) => {
    const { task } = JSON.parse(String(data)) as { task?: number };
    if (task !== undefined) stream.send(JSON.stringify({ result: task }));
  });
  const first = setTimeout(() => {
    stream.send(heartbeat);
    const timer = setInterval(() => stream.send(heartbeat), HEARTBEAT_MS);
    stream.once("close", () => clearInterval(timer));
  }, Math.random() * HEARTBEAT_MS);
  stream.once("close", () => clearTimeout(first));
  connections.push(stream);
}

async function growTo(count: number, open: () => Promise<void>): Promise<void> {
  let missing = count - connections.length;
  const lane = async () => {
    while (missing > 0) {
      missing -= 1;
      await open();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

function closeAll(): void {
  for (const connection of connections.splice(0)) {
    if (connection instanceof WebSocket) connection.terminate();
    else connection.destroy();
  }
}

const control = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://bench");
  const count = Number(searchParams.get("count"));
  const started = performance.now();
  if (pathname === "/close") closeAll();
  else await growTo(count, pathname === "/streams" ? openStream : hold);
  response.end(JSON.stringify({ seconds: (performance.now() - started) / 1000 }));
});
await new Promise<void>((resolve) => control.listen(0, "127.0.0.1", resolve));
const { port: controlPort } = control.address() as AddressInfo;
process.stdout.write(`${JSON.stringify({ control: `http://127.0.0.1:${controlPort}` })}\n`);
