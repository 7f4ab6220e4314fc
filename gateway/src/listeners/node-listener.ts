// The node-facing listener: agents open streams here, over mutual TLS. A node is identified as at the api
// (service/src/node-identity); the route decides whether it may open this stream now. Refusals carry the error envelope,
// so that an agent learns the reason.

import { X509Certificate } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Server } from "node:https";
import type { Socket } from "node:net";
import { ApiError } from "@holdfast/contracts/errors";
import { certificateFaults } from "@holdfast/contracts/errors/nodes";
import { gatewayListeners, LISTENER_HEADER } from "@holdfast/contracts/headers";
import { checkIdentity } from "@holdfast/contracts/node/endpoints";
import type { Forgery } from "@holdfast/service/forgeries";
import { isAllowedHost } from "@holdfast/service/hosts";
import { createHttpServer, type HttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import { answerCanary, CANARY_PATH } from "@holdfast/service/node-identity/canary";
import {
  type Issuers,
  issuersOf,
  judge,
  type PresentedCertificate,
} from "@holdfast/service/node-identity/certificate";
import { clientCertificates } from "@holdfast/service/node-identity/client-certificates";
import { type Instance, instanceOf } from "@holdfast/service/node-identity/instance";
import { hostHeadersOf } from "@holdfast/service/node-identity/names";
import { askForCertificate, listenerContext } from "@holdfast/service/node-identity/tls";
import { bareExposure } from "@holdfast/service/settings";
import type { ServiceIdentity } from "../api-link/enroll.ts";
import { peerSockets } from "./peer-sockets.ts";
import { pendingByNode } from "./pending-by-node.ts";
import { type AcceptSocket, serveUpgrades } from "./upgrades.ts";

/** `id`: of what the stream belongs to, such as a terminal. */
export type StreamPlace = { nodeId: string; id: string };

/** Who brings a stream; also what is needed to pass it on to another gateway. */
export type StreamOrigin = {
  /** The node's certificate, in the form of the header in which it is forwarded. */
  certificate: string | undefined;
  instance: Instance;
  /** Another gateway passes it on. */
  isRelayed: boolean;
  /** What it runs on. */
  socket: Socket;
};

/** What streams of one kind are for. */
export type NodeRoute = {
  /** Finds the node's id and the stream's in a path of lower case; undefined: not a path of this route. */
  placeOf(path: string): StreamPlace | undefined;
  /** Whether this node may open this stream now. Throws ApiError, or ApiUnreachable when the api cannot be reached. */
  admit(
    stream: StreamPlace & { serial: string; correlationId: string; origin: StreamOrigin },
  ): Promise<AcceptSocket>;
  /** The node's own certificate was not accepted for this stream. */
  onCertificateRefused(place: StreamPlace, error: ApiError): void;
};

export type NodeListener = {
  listen: HttpServer["listen"];
  /** Nodes can connect from now on; open connections stay. */
  use(identity: ServiceIdentity, ticketKeys: Buffer): void;
  /** The mark in certificates of ingresses that are trusted; undefined: there are none. */
  trustIngress(mark: string | undefined): void;
  isUsable(): boolean;
  /** The number of open sockets. */
  size(): number;
  /** Ends the remaining streams, then the listener. */
  stop(withinMs: number): Promise<void>;
};

export type NodeListenerOptions = {
  bind: string;
  names: readonly string[];
  routes: readonly NodeRoute[];
  onRefused(code: string): void;
  onForged(forgery: Forgery): void;
  log: Log;
  metrics: Metrics;
};

const CLOSE_CERTIFICATE_EXPIRED = 4401;
/** Without this header, an agent that has a wrong address knows that it did not reach the gateway. */
const identified = { [LISTENER_HEADER]: gatewayListeners.node };

export function createNodeListener(options: NodeListenerOptions): NodeListener {
  const { log } = options;
  const hosts = hostHeadersOf(options.names);
  let issuers: Issuers | undefined;
  let ingressMark: string | undefined;
  const certificates = clientCertificates({
    issuers: () => issuers,
    ingressMark: () => ingressMark,
    trustGateways: true,
    now: Date.now,
  });
  const http = createHttpServer({
    process: "gateway",
    exposure: bareExposure(options.bind),
    tls: askForCertificate,
    hosts,
    log,
    metrics: options.metrics,
    bodyLimit: 1024,
    routine: new Set([CANARY_PATH]),
    isHandedOver: certificates.isHandedOver,
    onForged: options.onForged,
  });
  http.app.addHook("onRequest", (_request, reply, done) => {
    reply.headers(identified);
    done();
  });
  http.app.get<{ Params: { node_id: string } }>(
    checkIdentity.path.replace("{node_id}", ":node_id"),
    async (request) => {
      const { nodeId } = accepted(certificates.of(request.raw), request.params.node_id.toLowerCase());
      return { node_id: nodeId };
    },
  );
  http.app.get(CANARY_PATH, { exposeHeadRoute: false }, async (request) =>
    answerCanary(certificates, request.raw),
  );
  const server = http.app.server as unknown as Server;
  const peers = peerSockets();
  const pending = pendingByNode();

  const admit = async (request: IncomingMessage, correlationId: string): Promise<AcceptSocket> => {
    const { route, place } = routeOf(options.routes, request);
    if (!isAllowedHost(request.headers.host, hosts)) throw new ApiError("host_refused");
    http.refuseForged(request, correlationId);
    let presented: PresentedCertificate = { kind: "none" };
    try {
      presented = certificates.of(request);
      const { serial } = accepted(presented, place.nodeId);
      const origin = {
        certificate: certificates.toForward(request),
        instance: instanceOf(request.headers),
        isRelayed: certificates.gatewayOf(request) !== null,
        socket: request.socket,
      };
      const stream = { ...place, serial, correlationId, origin };
      const accept = await pending.run(place.nodeId, () => route.admit(stream));
      return untilExpiry(accept, presented);
    } catch (error) {
      noteRefusal(error, { route, place, presented, correlationId });
      throw error;
    }
  };

  /** Refusals without a node's certificate are only counted: anyone can name any stream. A node's own refused certificate ends its stream. */
  const noteRefusal = (error: unknown, { route, place, presented, correlationId }: Refused) => {
    const code = error instanceof ApiError ? error.code : "api_unreachable";
    const details = { correlation_id: correlationId, reason: code, session_id: place.id };
    if (presented.kind !== "node") {
      const serial = "serial" in presented ? { serial: presented.serial } : {};
      return log.debug({ ...details, ...serial }, "refused a stream without a node's certificate");
    }
    log.warn({ ...details, node_id: presented.nodeId, serial: presented.serial }, "refused a node's stream");
    if (!(error instanceof ApiError) || !certificateCodes.has(error.code) || presented.nodeId !== place.nodeId)
      return;
    route.onCertificateRefused(place, error);
  };

  const stopServing = serveUpgrades({
    server,
    peers,
    admit,
    unexpected: apiUnreachable,
    onRefused: ({ code }) => options.onRefused(code),
    headers: identified,
  });

  return {
    listen: http.listen,
    use({ certificate, key, authorities }, ticketKeys) {
      issuers = issuersOf(authorities.map((pem) => new X509Certificate(pem)));
      server.setSecureContext(
        listenerContext({ cert: certificate, key, authorities, ticketKeys, purpose: "holdfast-node-terminal" }),
      );
    },
    trustIngress(mark) {
      ingressMark = mark;
    },
    isUsable: () => issuers !== undefined,
    size: peers.size,
    async stop(withinMs) {
      await peers.stop(withinMs);
      await http.stop();
      stopServing();
    },
  };
}

type Refused = { route: NodeRoute; place: StreamPlace; presented: PresentedCertificate; correlationId: string };

/** Refusals that are about the certificate, not about the stream. */
const certificateCodes: ReadonlySet<string> = new Set([...certificateFaults, "certificate_unusable"]);

/** Throws ApiError unless it is a valid certificate of this node. */
function accepted(presented: PresentedCertificate, nodeId: string): { nodeId: string; serial: string } {
  const judged = judge(presented, { now: Date.now(), revoked: false });
  if ("refused" in judged) throw new ApiError(judged.refused);
  if (judged.nodeId !== nodeId) throw new ApiError("node_mismatch");
  return judged;
}

function routeOf(
  routes: readonly NodeRoute[],
  request: IncomingMessage,
): { route: NodeRoute; place: StreamPlace } {
  const path = (request.url ?? "").toLowerCase();
  for (const route of routes) {
    const place = route.placeOf(path);
    if (place) return { route, place };
  }
  throw new ApiError("route_not_found");
}

/** By the time the certificate expires the agent has a newer one, and reconnects with it. */
function untilExpiry(accept: AcceptSocket, presented: PresentedCertificate): AcceptSocket {
  const notAfter = presented.kind === "node" ? presented.notAfter.getTime() : Date.now();
  return (socket, watched) => {
    const expiry = setTimeout(
      () => socket.close(CLOSE_CERTIFICATE_EXPIRED, "cert_expired"),
      notAfter - Date.now(),
    );
    socket.once("close", () => clearTimeout(expiry));
    accept(socket, watched);
  };
}

/** No stream is admitted without the api; open streams stay. */
function apiUnreachable(): ApiError {
  return new ApiError("shutting_down", {
    message: "The gateway cannot reach the API, which decides who may connect.",
    headers: { "retry-after": "1" },
  });
}
