// The listener for browsers and the CLI. Host, forged certificates and Origin are checked before an upgrade; each path has
// a route that reads the rest. The list of subprotocols may hold a token: it is never echoed or logged.

import type { IncomingMessage } from "node:http";
import { ApiError } from "@holdfast/contracts/errors";
import { gatewayListeners, LISTENER_HEADER } from "@holdfast/contracts/headers";
import type { Forgery } from "@holdfast/service/forgeries";
import type { Readiness } from "@holdfast/service/health";
import { isAllowedHost } from "@holdfast/service/hosts";
import { createHttpServer, type HttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import type { Exposure } from "@holdfast/service/settings";
import type { WebSocket, WebSocketServer } from "ws";
import { type PublicPlace, publicHosts } from "./addresses.ts";
import { peerSockets } from "./peer-sockets.ts";
import { type OwnSocket, serveUpgrades } from "./upgrades.ts";

/** What one path of the listener is for. */
export type PublicRoute = {
  path: string;
  /** The subprotocol that is selected from those that a client offers. */
  protocol: string;
  /** Reads what the request offers; throws ApiError where it is malformed. What it returns takes the socket, and never rejects. */
  admit(request: IncomingMessage, correlationId: string): (socket: WebSocket) => Promise<void>;
};

/** A path whose clients are admitted before the upgrade, and whose sockets the route watches by itself. */
export type AdmittedRoute = {
  path: string;
  server: WebSocketServer;
  /** Rejects with the ApiError to respond with. */
  admit(request: IncomingMessage, correlationId: string): Promise<OwnSocket["accept"]>;
};

export type PublicListener = {
  listen: HttpServer["listen"];
  /** From here on upgrades are answered. */
  serve(sockets: SocketOptions): PublicSockets;
  stop(): Promise<void>;
};

type SocketOptions = {
  routes: readonly PublicRoute[];
  admittedRoutes: readonly AdmittedRoute[];
  /** Origins of pages that may connect; undefined: the api has not said yet. */
  origins(): readonly string[] | undefined;
  onRefused(code: string): void;
};

export type PublicSockets = {
  /** Sockets that are open. */
  size(): number;
  /** New ones are refused from here on. */
  close(): void;
  stop(withinMs: number): Promise<void>;
};

type PublicListenerOptions = {
  settings: Exposure & PublicPlace;
  /** Paths that only upgrades are served at, and what anything else is answered with. */
  upgradeOnly: Record<string, () => ApiError>;
  readiness(): Promise<Readiness>;
  onForged(forgery: Forgery): void;
  log: Log;
  metrics: Metrics;
};

/** Sockets whose route is still asking the api about them. */
const MOST_PENDING = 512;
const readableByPages = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": LISTENER_HEADER,
};

export function createPublicListener(options: PublicListenerOptions): PublicListener {
  const { settings, log } = options;
  const hosts = publicHosts(settings);
  const http = createHttpServer({
    process: "gateway",
    exposure: settings,
    hosts,
    log,
    metrics: options.metrics,
    bodyLimit: 64 * 1024,
    onForged: options.onForged,
    readiness: options.readiness,
  });
  http.app.addHook("onRequest", (request, reply, done) => {
    reply.header(LISTENER_HEADER, gatewayListeners.public);
    // A page of the api learns by it whether it reaches the gateway at all; the answer says nothing more.
    if (request.routeOptions.url === "/healthz") reply.headers(readableByPages);
    done();
  });
  for (const [path, refusal] of Object.entries(options.upgradeOnly)) {
    http.app.get(path, () => {
      throw refusal();
    });
  }
  for (const path of ["/internal", "/internal/*"]) {
    http.app.all(path, () => {
      throw new ApiError("internal_listener_only");
    });
  }
  return { listen: http.listen, serve: (sockets) => serveSockets({ http, hosts, log }, sockets), stop: http.stop };
}

type Served = { http: HttpServer; hosts: ReadonlySet<string>; log: Log };

function serveSockets({ http, hosts, log }: Served, options: SocketOptions): PublicSockets {
  const { routes, admittedRoutes, origins } = options;
  const peers = peerSockets({
    handleProtocols: (offered) => routes.find(({ protocol }) => offered.has(protocol))?.protocol ?? false,
  });
  let pending = 0;
  let closing = false;

  const admit = async (request: IncomingMessage, correlationId: string) => {
    const { host, origin } = request.headers;
    const path = pathOf(request);
    const route = routes.find((one) => one.path === path);
    const admittedRoute = admittedRoutes.find((one) => one.path === path);
    if (!route && !admittedRoute) throw new ApiError("route_not_found");
    if (closing) throw new ApiError("shutting_down", { headers: { "retry-after": "2" } });
    if (!isAllowedHost(host, hosts)) throw new ApiError("host_refused");
    http.refuseForged(request, correlationId);
    // Before the api has said which origins are allowed, nobody gets further than an error frame.
    const allowed = origins();
    if (origin !== undefined && allowed && !allowed.includes(origin)) throw new ApiError("origin_refused");
    if (admittedRoute)
      return { server: admittedRoute.server, accept: await admittedRoute.admit(request, correlationId) };
    if (pending >= MOST_PENDING) throw new ApiError("rate_limit_exceeded", { headers: { "retry-after": "1" } });
    const accept = (route as PublicRoute).admit(request, correlationId);
    return (socket: WebSocket) => {
      pending += 1;
      void accept(socket).finally(() => {
        pending -= 1;
      });
    };
  };

  const stopServing = serveUpgrades({
    server: http.app.server,
    peers,
    ownServers: [...new Set(admittedRoutes.map(({ server }) => server))],
    admit,
    unexpected: () => new ApiError("internal_error"),
    onRefused: ({ code }, correlationId) => {
      options.onRefused(code);
      log.info({ correlation_id: correlationId, code }, "refused an upgrade");
    },
    headers: {},
  });
  return {
    size: peers.size,
    close() {
      closing = true;
    },
    async stop(withinMs) {
      await peers.stop(withinMs);
      stopServing();
    },
  };
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? "/").split("?")[0] ?? "/";
}
