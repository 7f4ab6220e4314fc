// The agent's local listener: health, free capacity, metrics. No authentication, nothing secret, read-only;
// DNS rebinding by a foreign site is refused by the Host header.

import type { IncomingMessage } from "node:http";
import { CERTIFICATE_HEADER } from "@holdfast/contracts/headers";
import { isErrno } from "@holdfast/kit/files";
import { explainListenError } from "@holdfast/kit/listening";
import { redact } from "@holdfast/kit/redact";
import { http } from "../http-module.ts";
import { isLoopbackName } from "../loopback.ts";

export type LocalAnswers = {
  healthz: () => { ok: boolean } & Record<string, unknown>;
  capacity: () => Record<string, unknown>;
  /** Prometheus text. */
  metrics: () => string;
};

export type LocalListener = { port: number; close(): Promise<void> };

/** Any user of the host can occupy the port. That must not stop the agent: it uses a free one, and reports it. */
export async function openLocalListener(
  options: { bind: string; port: number; onTaken: (why: string) => void; onForged: (detail: string) => void },
  answers: LocalAnswers,
): Promise<LocalListener> {
  const server = http.createServer((request, response) => {
    const forged = request.headers[CERTIFICATE_HEADER] !== undefined;
    if (forged) options.onForged(`from ${request.socket.remoteAddress ?? "unknown"}`);
    const refused = json(403, { code: "certificate_header_refused" });
    const { status, type, body } = forged ? refused : answer(request, options.bind, answers);
    response.writeHead(status, {
      "content-type": type,
      "content-length": Buffer.byteLength(body),
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    });
    response.end(request.method === "HEAD" ? undefined : body);
  });
  server.maxHeadersCount = 50;
  server.headersTimeout = 5_000;
  server.requestTimeout = 5_000;
  server.keepAliveTimeout = 5_000;
  server.maxConnections = 32;
  const { bind, port, onTaken } = options;
  const listen = (on: number) =>
    new Promise<void>((resolve, reject) => {
      // Stays registered: a later error of a connection must not end the process.
      server.on("error", reject);
      server.listen(on, bind, resolve);
    });
  try {
    await listen(port);
  } catch (error) {
    const why = explainListenError(error as Error, {
      process: "agent",
      port,
      bind,
      setting: "HOLDFAST_AGENT_PORT",
    });
    if (!isErrno(error, "EADDRINUSE")) throw why;
    onTaken(why.message);
    await listen(0);
  }
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type LocalAnswer = { status: number; type: string; body: string };

function answer(request: IncomingMessage, bind: string, answers: LocalAnswers): LocalAnswer {
  if (!isAllowedHost(request.headers.host, bind)) return json(421, { code: "host_refused" });
  if (request.method !== "GET" && request.method !== "HEAD") return json(405, { code: "method_not_allowed" });
  switch (request.url?.split("?")[0]) {
    case "/healthz": {
      const health = answers.healthz();
      return json(health.ok ? 200 : 503, health);
    }
    case "/v1/capacity":
      return json(200, answers.capacity());
    case "/metrics":
      return { status: 200, type: "text/plain; version=0.0.4; charset=utf-8", body: answers.metrics() };
    default:
      return json(404, { code: "route_not_found" });
  }
}

/** Beyond loopback the host may be reached by any name. */
export function isAllowedHost(header: string | undefined, bind: string): boolean {
  if (header === undefined) return false;
  return !isLoopbackName(bind) || isLoopbackName(header.replace(/:\d{1,5}$/, "").toLowerCase());
}

function json(status: number, body: unknown): LocalAnswer {
  return { status, type: "application/json", body: `${redact(JSON.stringify(body))}\n` };
}
