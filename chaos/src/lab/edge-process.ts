// The edge's process: edge-process <certificates> <name> <listen> <target>. Takes its orders over the channel to its
// parent, and prints what it does as JSON lines.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Agent, request as ask, createServer } from "node:https";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import type { SecureContextOptions, TLSSocket } from "node:tls";
import { CERTIFICATE_HEADER } from "@holdfast/contracts/headers";
import type { EdgeRule } from "./edge.ts";

type Order = { number: number; rules: EdgeRule[]; relent: boolean; cut: boolean; pem?: string | null };

const [certificates = "", name = "", listen = "", target = ""] = process.argv.slice(2);
const pem = (file: string) => readFileSync(join(certificates, `${file}.pem`));
const report = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

const api = new Agent({
  keepAlive: true,
  cert: pem("ingress"),
  key: pem("ingress"),
  ca: pem("trust"),
  servername: name,
});
const kept = new Set<ServerResponse>();
let rules: EdgeRule[] = [];

const server = createServer(
  { cert: pem("listener"), key: pem("listener"), requestCert: true, rejectUnauthorized: false },
  async (request, response) => {
    const path = request.url?.split("?")[0] ?? "";
    const body = await buffer(request).catch(() => undefined);
    if (!body) return;
    const rule = ruleOf(path);
    if (rule?.do === "answer") {
      report({ answered: rule.status, path });
      const headers = { "content-type": "text/html", ...(rule.close ? { connection: "close" } : {}) };
      return void response.writeHead(rule.status, headers).end(rule.page);
    }
    if (rule?.do === "keep_request") return keep(response, path);
    const answer = await passOn(request, body);
    if (!answer) return void response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad Gateway</h1>");
    // Asked again: a poll is under way for long, and the rule that holds now is what counts.
    const now = ruleOf(path);
    if (now?.do === "keep_answer" && answer.body.includes(now.with ?? "")) keep(response, path);
    else response.writeHead(answer.status, answer.headers).end(answer.body);
  },
);
// Longer than agents keep a connection, as every edge should.
server.keepAliveTimeout = 60_000;
server.listen(placeOf(listen), () => process.send?.({ type: "ready", ports: {} }));

process.on("message", (order: Order) => {
  ({ rules } = order);
  if (order.relent) {
    for (const response of kept) response.socket?.destroy();
    kept.clear();
  }
  if (order.pem !== undefined) present(order.pem ?? pem("listener"));
  if (order.cut) server.closeAllConnections();
  report({ received: order.number });
});
process.once("disconnect", () => process.exit(0));

function present(listener: string | Buffer): void {
  server.setSecureContext({
    cert: listener,
    key: listener,
    requestCert: true,
    rejectUnauthorized: false,
  } as SecureContextOptions);
}

function ruleOf(path: string): EdgeRule | undefined {
  return rules.findLast((one) => path.endsWith(one.path));
}

function keep(response: ServerResponse, path: string): void {
  kept.add(response);
  report({ kept: path });
}

/** Undefined: the api does not answer. */
function passOn(request: IncomingMessage, body: Buffer) {
  const shown = (request.socket as TLSSocket).getPeerCertificate().raw as Buffer | undefined;
  const { connection, ...headers } = request.headers;
  return new Promise<{ status: number; headers: IncomingMessage["headers"]; body: Buffer } | undefined>(
    (resolve) => {
      const onward = ask({
        ...placeOf(target),
        agent: api,
        method: request.method,
        path: request.url,
        headers: { ...headers, ...(shown ? { [CERTIFICATE_HEADER]: escaped(shown) } : {}) },
      });
      // A request whose client no longer waits is not forwarded.
      request.socket.once("close", () => onward.destroy());
      onward.once("error", () => resolve(undefined));
      onward.once("response", async (answer) => {
        const body = await buffer(answer).catch(() => undefined);
        const { connection: ended, ...kept } = answer.headers;
        resolve(body && { status: answer.statusCode ?? 502, headers: kept, body });
      });
      onward.end(body);
    },
  );
}

function escaped(certificate: Buffer): string {
  return encodeURIComponent(new X509Certificate(certificate).toString());
}

function placeOf(place: string): { host: string; port: number } {
  const [host = "", port] = place.split(":");
  return { host, port: Number(port) };
}
