// A server of `ws` and nothing else, which answers pings as a gateway does: the peer of the `idle` bench.

import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";

const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false });
server.on("connection", (socket) => {
  socket.on("error", () => undefined);
  socket.on("message", (data) => {
    const frame = JSON.parse(String(data)) as { type: string; ts: number };
    if (frame.type === "ping") socket.send(JSON.stringify({ type: "pong", ts: frame.ts }));
  });
});
server.on("listening", () => {
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/ws`;
  process.stdout.write(`${JSON.stringify({ url, pid: process.pid })}\n`);
});
