// The least that can serve agents: Node's own https server with mutual TLS. It holds requests without answering, answers
// messages on WebSocket streams, and pushes a message to every stream when it is asked to.

import { createServer } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import type { ServerCredentials } from "./credentials.ts";

export type BareServer = { port: number; control: string };
/** Milliseconds until every stream has answered, each of so many times. */
export type Pushed = { milliseconds: number[] };

const { cert, key, authorities } = JSON.parse(process.env["BENCH_PEER"] ?? "") as ServerCredentials;
const held = new Set<unknown>();
const streams = new Set<WebSocket>();
const awaited = new Map<number, () => void>();
let pushes = 0;

const server = https.createServer(
  { cert, key, ca: authorities, requestCert: true, rejectUnauthorized: false },
  (_request, response) => {
    held.add(response);
    response.once("close", () => held.delete(response));
  },
);
new WebSocketServer({ server, perMessageDeflate: false }).on("connection", (stream) => {
  streams.add(stream);
  stream.on("close", () => streams.delete(stream));
  stream.on("message", (data) => {
    const { result } = JSON.parse(String(data)) as { result?: number };
    if (result === undefined) stream.send(JSON.stringify({ heard: true }));
    else awaited.get(result)?.();
  });
});

function push(stream: WebSocket): Promise<void> {
  const task = pushes++;
  return new Promise((resolve) => {
    awaited.set(task, () => {
      awaited.delete(task);
      resolve();
    });
    stream.send(JSON.stringify({ task }));
  });
}

/** To each stream at once, or to one alone. */
async function pushTimes(times: number, toAll: boolean): Promise<Pushed> {
  const milliseconds: number[] = [];
  for (let done = 0; done < times; done += 1) {
    const started = performance.now();
    await Promise.all([...streams].slice(0, toAll ? streams.size : 1).map(push));
    milliseconds.push(performance.now() - started);
  }
  return { milliseconds };
}

const control = createServer(async (request, response) => {
  const { searchParams } = new URL(request.url ?? "/", "http://bench");
  const pushed = await pushTimes(Number(searchParams.get("times")), searchParams.get("to") === "all");
  response.end(JSON.stringify(pushed));
});
for (const one of [server, control]) {
  await new Promise<void>((resolve) => one.listen(0, "127.0.0.1", resolve));
}
const portOf = (one: typeof server | typeof control) => (one.address() as AddressInfo).port;
const ready: BareServer = { port: portOf(server), control: `http://127.0.0.1:${portOf(control)}` };
process.stdout.write(`${JSON.stringify(ready)}\n`);
