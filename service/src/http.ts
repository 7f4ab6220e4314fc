// The HTTP listener every process builds on. It decides, in this order and before anything else
// looks at a request: correlation id, allowed Host, no forged certificate, security headers. Whatever goes
// wrong leaves as one envelope with a code from the catalogue.

import { type IncomingMessage, maxHeaderSize } from "node:http";
import { type Socket, Server as TcpServer } from "node:net";
import type { TlsOptions } from "node:tls";
import { ApiError } from "@holdfast/contracts/errors";
import { CORRELATION_HEADER } from "@holdfast/contracts/headers";
import { explainListenError } from "@holdfast/kit/listening";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import type { Forgery } from "./forgeries.ts";
import { addHealthRoutes, type Readiness } from "./health.ts";
import { allowedHosts, isAllowedHost } from "./hosts.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { carriesCertificate } from "./node-identity/handed-over.ts";
import { answerError, correlationIdOf, refuseBeforeRouting, refuseBroken } from "./refusals.ts";
import { organizationOf } from "./request-organization.ts";
import { type Exposure, readTls } from "./settings.ts";

export type HttpServer = {
  app: FastifyInstance;
  /** Starts to listen and returns the port, which matters when it was 0. */
  listen(options: { port: number; portSetting: string }): Promise<number>;
  /** Logs and counts a request. Called for all but those over a connection of another kind, whose listener calls it. */
  reportRequest(request: FinishedRequest): void;
  /** For an upgrade, for which no hook runs: throws when it carries a certificate in a header. */
  refuseForged(request: IncomingMessage, correlationId: string): void;
  /** Keeps serving, but reports that it is not ready and closes each connection after its response. */
  startDraining(): void;
  /**
   * Accepts no new connections. Existing ones are served until their clients have closed them, or for that
   * long: closed from here, one might lose a request that is on its way.
   */
  stopAccepting(withinMs: number): Promise<void>;
  /** Finishes requests in flight, rejects new ones, then closes. */
  stop(): Promise<void>;
};

export type FinishedRequest = {
  correlationId: string;
  method: string;
  /** The route's template and not the URL: a query string may hold anything. */
  route: string;
  status: number;
  milliseconds: number;
  orgId?: string | undefined;
};

export type HttpOptions = {
  /** Which process listens, for messages. */
  process: string;
  exposure: Exposure;
  /** TLS of the listener's own, instead of the files that the exposure names. */
  tls?: TlsOptions;
  /** Accepted host names, instead of those that follow from the exposure. */
  hosts?: ReadonlySet<string>;
  log: Log;
  metrics: Metrics;
  bodyLimit: number;
  /** Whether the connection is from an ingress and may carry a certificate in a header; default: never. */
  isHandedOver?: (request: IncomingMessage) => boolean;
  /** Called when a request was rejected because it carries a certificate in a header. */
  onForged?: (forgery: Forgery) => void;
  /** Only programs connect here: responses carry no headers for browsers. */
  forPrograms?: boolean;
  /** Routes that are called all the time: their successes are not logged. */
  routine?: ReadonlySet<string>;
  /** Without it there are no health routes either. */
  readiness?: () => Promise<Readiness>;
  /** Turns an error of a lower layer into one for clients; undefined leaves it an internal error. */
  translateError?: (error: unknown) => ApiError | undefined;
  /** The last word on what is answered, where callers know other codes. */
  rephrase?: (error: ApiError) => ApiError;
  /** Methods that a path would take, for `method_not_allowed`. */
  methodsOf?: (path: string) => string[];
};

const STOP_DEADLINE_MS = 5_000;
/** When a whole fleet connects together, connections wait in the kernel's backlog instead of being retransmitted. */
const BACKLOG = 4_096;

/** On every answer. Data needs few: nothing in it may run, be framed, be guessed at or be embedded elsewhere. */
const headersForBrowsers: Record<string, string> = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

const headersOverTls = { ...headersForBrowsers, "strict-transport-security": "max-age=31536000" };
/** A fleet sends a thousand requests a second, and every header costs time at both ends. */
const headersForPrograms: Record<string, string> = { "x-content-type-options": "nosniff" };

/** What a page needs beyond that; `connectTo` are origins besides its own that it may talk to. */
export function pageHeaders(connectTo: readonly string[] = []): Record<string, string> {
  return {
    "content-security-policy":
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
      `connect-src ${["'self'", ...connectTo].join(" ")}; ` +
      "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
  };
}

function noSchemas(): never {
  throw new Error("routes have no schemas of Fastify's: declare an endpoint");
}

export function createHttpServer(options: HttpOptions): HttpServer {
  const tls = options.tls ?? readTls(options.exposure);
  const hosts = options.hosts ?? allowedHosts(options.exposure);
  const headers = options.forPrograms ? headersForPrograms : tls ? headersOverTls : headersForBrowsers;
  // The line per request has five fields of our own, none of them secret. Looking through it for
  // secret fields took 20 of its 26 µs; the finished line is scanned for secrets all the same.
  const requestLog = options.log.child({}, { redact: [] });
  let stopping = false;
  let draining = false;
  let allClosed: Promise<void> | undefined;

  const refuseForged = (request: IncomingMessage, correlationId: string, address?: string) => {
    if (!carriesCertificate(request) || options.isHandedOver?.(request)) return;
    options.onForged?.({ address: address ?? request.socket.remoteAddress ?? "unknown", correlationId });
    throw new ApiError("certificate_header_refused");
  };

  /** What is decided before anything else looks at a request. */
  const refusalOf = (request: FastifyRequest): ApiError | undefined => {
    if (stopping) return new ApiError("shutting_down", { headers: { connection: "close", "retry-after": "2" } });
    if (!isAllowedHost(request.headers.host, hosts)) return new ApiError("host_refused");
    try {
      refuseForged(request.raw, request.id, request.ip);
    } catch (error) {
      return error as ApiError;
    }
    return undefined;
  };

  const app = Fastify({
    // Without a Host the request reaches our own check and gets an answer of ours.
    ...(tls ? { https: { ...tls, requireHostHeader: false } } : { http: { requireHostHeader: false } }),
    logger: false,
    // Contracts check what comes in, and no route has a schema of Fastify's: the compilers that it would load for them cost
    // every process 45 ms at its start.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    bodyLimit: options.bodyLimit,
    trustProxy: options.exposure.trustedProxies ?? false,
    requestTimeout: 30_000,
    // Longer than agents and proxies keep an idle connection, so that the client closes it, not we.
    keepAliveTimeout: 75_000,
    return503OnClosing: false,
    // A long path parameter is refused like any wrong one: after the hooks, by the endpoint's schema.
    routerOptions: { maxParamLength: maxHeaderSize },
    genReqId: correlationIdOf,
    // A path that cannot be decoded reaches no hook.
    frameworkErrors: (error, request, reply) => {
      const refused = refusalOf(request);
      return answerError(options, refused ?? error, request, reply.headers(headers));
    },
    clientErrorHandler: (error, socket) => refuseBroken(options.log, error, socket),
  }) as unknown as FastifyInstance;
  refuseBeforeRouting(app.server);

  const connections = connectionsOf(app.server);

  app.addHook("onRequest", (request, reply, done) => {
    reply.header(CORRELATION_HEADER, request.id);
    reply.headers(headers);
    done(refusalOf(request));
  });

  app.addHook("onSend", (_request, reply, payload, done) => {
    if (draining) reply.header("connection", "close");
    done(null, payload);
  });

  const reportRequest = (finished: FinishedRequest) => {
    const { correlationId, method, route, status, milliseconds, orgId } = finished;
    options.metrics.observeRequest({ method, route, status, seconds: milliseconds / 1000 });
    const usual = status < 400 && options.routine?.has(route);
    const level = quietRoutes.has(route) ? "trace" : usual ? "debug" : "info";
    if (!requestLog.isLevelEnabled(level)) return;
    const ms = Math.round(milliseconds * 10) / 10;
    const org = orgId === undefined ? {} : { org_id: orgId };
    requestLog[level]({ correlation_id: correlationId, ...org, method, route, status, ms }, "request");
  };
  app.addHook("onResponse", (request, reply, done) => {
    const { id: correlationId, method, routeOptions } = request;
    const route = routeOptions.url ?? "unknown";
    const { statusCode: status, elapsedTime: milliseconds } = reply;
    reportRequest({ correlationId, method, route, status, milliseconds, orgId: organizationOf(request) });
    done();
  });

  app.setErrorHandler((error, request, reply) => answerError(options, error, request, reply));
  app.setNotFoundHandler((request) => {
    const methods = options.methodsOf?.(request.url.split("?")[0] ?? "") ?? [];
    if (methods.length === 0) throw new ApiError("route_not_found");
    throw new ApiError("method_not_allowed", { headers: { allow: methods.join(", ") } });
  });
  const { readiness } = options;
  if (readiness) {
    const readinessNow = async () => (draining ? notReadyAgain(await readiness()) : readiness());
    addHealthRoutes(app, { metrics: options.metrics, readiness: readinessNow });
  }

  return {
    app,
    reportRequest,
    async listen({ port, portSetting }) {
      try {
        await app.listen({ port, host: options.exposure.bind, backlog: BACKLOG });
      } catch (error) {
        const { process: name, exposure } = options;
        throw explainListenError(error as Error, {
          process: name,
          port,
          bind: exposure.bind,
          setting: portSetting,
        });
      }
      const address = app.server.address();
      return typeof address === "object" && address ? address.port : port;
    },
    refuseForged,
    startDraining() {
      draining = true;
    },
    async stopAccepting(withinMs) {
      await nobodyAtTheDoor();
      // Not the HTTP server's own, which also closes connections that happen to have no request.
      allClosed = new Promise<void>((resolve) => TcpServer.prototype.close.call(app.server, () => resolve()));
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, withinMs);
      });
      await Promise.race([allClosed, late]);
      clearTimeout(timer);
    },
    async stop() {
      stopping = true;
      let deadline: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        deadline = setTimeout(() => {
          for (const socket of connections) socket.destroy();
          resolve();
        }, STOP_DEADLINE_MS);
      });
      await app.close();
      // A server that takes no connections any more has waited for none just now.
      await Promise.race([allClosed, late]);
      clearTimeout(deadline);
    },
  };
}

/** Also those that are still in the middle of TLS, which the server does not count among its own yet. */
function connectionsOf(server: TcpServer): ReadonlySet<Socket> {
  const connections = new Set<Socket>();
  // One function for all of them: thousands of sockets may be open.
  function forget(this: Socket) {
    connections.delete(this);
  }
  server.on("connection", (socket: Socket) => {
    connections.add(socket);
    socket.on("close", forget);
  });
  return connections;
}

/**
 * Resolves when whoever has connected so far was just let in. The kernel resets those that still wait when a listener
 * closes; with that little time in between, hardly anybody does. On a machine so busy that every turn takes longer, a
 * hundred of them are enough: those who are reset then dial again.
 */
async function nobodyAtTheDoor(): Promise<void> {
  let justNow = performance.now();
  for (let turn = 0; turn < 100; turn += 1) {
    // Comes right after the event loop has looked at its sockets.
    await new Promise((resolve) => setImmediate(resolve));
    const before = justNow;
    justNow = performance.now();
    if (turn > 0 && justNow - before < 1) return;
  }
}

function notReadyAgain({ checks }: Readiness): Readiness {
  return { ready: false, checks: { ...checks, draining: { ok: false, reason: "this process is stopping" } } };
}

const quietRoutes = new Set(["/healthz", "/readyz", "/metrics"]);
