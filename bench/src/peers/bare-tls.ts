// The least that can hold an agent's poll: Node's own https server with mutual TLS, which answers nothing.

import https from "node:https";
import type { AddressInfo } from "node:net";

export type BareTls = { cert: string; key: string; authorities: string[] };

const { cert, key, authorities } = JSON.parse(process.env["BENCH_PEER"] ?? "") as BareTls;
const held = new Set<unknown>();
const server = https.createServer(
  { cert, key, ca: authorities, requestCert: true, rejectUnauthorized: false },
  (_request, response) => held.add(response),
);
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
});
