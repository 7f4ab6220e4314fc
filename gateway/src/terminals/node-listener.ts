// The gateway's node-facing listener: agents bring the streams of terminals here, over mutual TLS. Who a
// node is, is decided as at the api (service/src/node-identity); whether it may bring this stream now, the
// api is asked. Refusals are answers with the error envelope, so that an agent learns why.

import { X509Certificate } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Server } from "node:https";
import type { Duplex } from "node:stream";
import { ApiError } from "@holdfast/contracts/errors";
import { certificateFaults } from "@holdfast/contracts/errors/nodes";
import { gatewayListeners, LISTENER_HEADER } from "@holdfast/contracts/headers";
import { checkIdentity } from "@holdfast/contracts/node-endpoints";
import type { Forgery } from "@holdfast/service/forgeries";
import { isAllowedHost } from "@holdfast/service/hosts";
import { createHttpServer, type HttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import {
  type Issuers,
  issuersOf,
  judge,
  type ShownCertificate,
} from "@holdfast/service/node-identity/certificate";
import { instanceOf } from "@holdfast/service/node-identity/instance";
import { hostHeadersOf } from "@holdfast/service/node-identity/names";
import { shownCertificates } from "@holdfast/service/node-identity/shown";
import { askForCertificate, listenerContext } from "@holdfast/service/node-identity/tls";
import { correlationIdOf } from "@holdfast/service/refusals";
import { refuseUpgrade } from "@holdfast/service/refuse-upgrade";
import { bareExposure } from "@holdfast/service/settings";
import type { ServiceIdentity } from "../services/enroll.ts";
import { peerSockets } from "./peer-sockets.ts";
import type { Sessions } from "./sessions.ts";

export type NodeListener = {
  listen: HttpServer["listen"];
  /** From here on it can be spoken to; connections that are there go on. */
  use(identity: ServiceIdentity, ticketKeys: Buffer): void;
  /** What certificates of ingresses that count carry; undefined: there are none. */
  trustIngress(mark: string | undefined): void;
  isUsable(): boolean;
  /** Sockets that are open. */
  size(): number;
  /** Ends the streams that are left, then the listener. */
  stop(withinMs: number): Promise<void>;
};

export type NodeListenerOptions = {
  bind: string;
  names: readonly string[];
  sessions: Pick<Sessions, "admit" | "streamArrived" | "streamRefused">;
  onRefused(code: string): void;
  onForged(forgery: Forgery): void;
  log: Log;
  metrics: Metrics;
};

type Place = { nodeId: string; sessionId: string };

const streamPath = /^\/internal\/v1\/nodes\/([0-9a-f-]{36})\/terminals\/([0-9a-f-]{36})$/;
/** Of one node, that the api is being asked about: after a restart an agent brings all its terminals at once. */
const MOST_ARRIVING = 256;
const CERTIFICATE_OVER = 4401;
/** An agent that was told a wrong address tells by it that it has not reached the gateway. */
const identified = { [LISTENER_HEADER]: gatewayListeners.node };

export function createNodeListener(options: NodeListenerOptions): NodeListener {
  const { sessions, log } = options;
  const hosts = hostHeadersOf(options.names);
  let issuers: Issuers | undefined;
  let ingressMark: string | undefined;
  const certificates = shownCertificates({
    issuers: () => issuers,
    ingressMark: () => ingressMark,
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
    isHandedOver: certificates.isHandedOver,
    onForged: options.onForged,
  });
  http.app.addHook("onRequest", (_request, reply, done) => {
    reply.headers(identified);
    done();
  });
  const server = http.app.server as unknown as Server;
  const peers = peerSockets();
  const arriving = new Map<string, number>();

  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const correlationId = correlationIdOf(request);
    admit(request, correlationId).then(
      ({ grant, serial, notAfter }) =>
        peers.server.handleUpgrade(request, socket, head, (opened) => {
          const { unresponsiveSince } = peers.watch(opened, socket);
          // The agent has a newer one by then, and comes back with it.
          const over = setTimeout(
            () => opened.close(CERTIFICATE_OVER, "cert_expired"),
            notAfter.getTime() - Date.now(),
          );
          opened.once("close", () => clearTimeout(over));
          void sessions.streamArrived(grant, { socket: opened, serial, unresponsiveSince });
        }),
      (error: unknown) => {
        const known = error instanceof ApiError ? error : awayError();
        options.onRefused(known.code);
        refuseUpgrade(socket, known, correlationId, identified);
      },
    );
  };

  const admit = async (request: IncomingMessage, correlationId: string) => {
    const place = placeOf(request);
    if (!isAllowedHost(request.headers.host, hosts)) throw new ApiError("host_refused");
    http.refuseForged(request, correlationId);
    let shown: ShownCertificate = { kind: "none" };
    try {
      shown = certificates.of(request);
      return await admitShown(request, place, shown, correlationId);
    } catch (error) {
      noteRefusal(error, place, shown, correlationId);
      throw error;
    }
  };

  const admitShown = async (
    request: IncomingMessage,
    { nodeId, sessionId }: Place,
    shown: ShownCertificate,
    correlationId: string,
  ) => {
    const judged = judge(shown, { now: Date.now(), revoked: false });
    if ("refused" in judged) throw new ApiError(judged.refused);
    if (judged.nodeId !== nodeId) throw new ApiError("node_mismatch");
    instanceOf(request.headers);
    const { serial } = judged;
    const underWay = arriving.get(nodeId) ?? 0;
    if (underWay >= MOST_ARRIVING) throw new ApiError("rate_limit_exceeded", { headers: { "retry-after": "1" } });
    arriving.set(nodeId, underWay + 1);
    try {
      const grant = await sessions.admit({ sessionId, nodeId, serial, correlationId });
      return { grant, serial, notAfter: shown.kind === "node" ? shown.notAfter : new Date() };
    } finally {
      const left = (arriving.get(nodeId) ?? 1) - 1;
      if (left === 0) arriving.delete(nodeId);
      else arriving.set(nodeId, left);
    }
  };

  /** Strangers are counted only: anybody can name any terminal. A certificate of the node itself ends its own. */
  const noteRefusal = (error: unknown, place: Place, shown: ShownCertificate, correlationId: string) => {
    const code = error instanceof ApiError ? error.code : "api_away";
    const details = { correlation_id: correlationId, reason: code, session_id: place.sessionId };
    if (shown.kind !== "node") return log.debug(details, "refused a stream without a node's certificate");
    log.warn({ ...details, node_id: shown.nodeId, serial: shown.serial }, "refused a node's stream");
    if (!(error instanceof ApiError) || !certificateCodes.has(error.code) || shown.nodeId !== place.nodeId) return;
    sessions.streamRefused(place, error);
  };

  http.app.get<{ Params: { node_id: string } }>(checkIdentity.path.replace("{node_id}", ":node_id"), (request) => {
    const judged = judge(certificates.of(request.raw), { now: Date.now(), revoked: false });
    if ("refused" in judged) throw new ApiError(judged.refused);
    if (judged.nodeId !== request.params.node_id.toLowerCase()) throw new ApiError("node_mismatch");
    return Promise.resolve({ node_id: judged.nodeId });
  });

  peers.server.on("wsClientError", (_error, socket, request) => {
    options.onRefused("invalid_request");
    refuseUpgrade(socket, new ApiError("invalid_request"), correlationIdOf(request), identified);
  });
  server.on("upgrade", onUpgrade);

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
      server.off("upgrade", onUpgrade);
    },
  };
}

/** Refusals because of the certificate, not because of the terminal. */
const certificateCodes: ReadonlySet<string> = new Set([...certificateFaults, "certificate_unusable"]);

function placeOf(request: IncomingMessage): Place {
  const [, nodeId, sessionId] = streamPath.exec((request.url ?? "").toLowerCase()) ?? [];
  if (nodeId === undefined || sessionId === undefined) throw new ApiError("route_not_found");
  return { nodeId, sessionId };
}

/** Nobody is let in unasked; what is there goes on. */
function awayError(): ApiError {
  return new ApiError("shutting_down", {
    message: "The gateway does not reach the api at the moment, which says who may come in.",
    headers: { "retry-after": "1" },
  });
}
