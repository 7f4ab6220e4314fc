// The streams of agents on the node-facing listener: which upgrades are accepted, and what happens to open streams when
// this process stops. No hook of the HTTP server runs for an upgrade, so Host, forged headers and identity are checked here.

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ApiError } from "@holdfast/contracts/errors";
import { STREAM_PATH } from "@holdfast/contracts/node/stream";
import { isAllowedHost } from "@holdfast/service/hosts";
import type { HttpServer } from "@holdfast/service/http";
import type { Metrics } from "@holdfast/service/metrics";
import { correlationIdOf } from "@holdfast/service/refusals";
import { refuseUpgrade } from "@holdfast/service/refuse-upgrade";
import { WebSocketServer } from "ws";
import type { Identification } from "../identity-hook.ts";
import type { NodeApi } from "../route.ts";
import { MOST_FRAME_BYTES } from "./frames.ts";
import { type OpenStream, openStream, type StreamOptions } from "./stream.ts";
import type { StreamEnd } from "./uses.ts";

export type Streams = {
  /** Asks agents to open a stream elsewhere; new streams are refused. */
  startDraining(): void;
  /** Completes the calls in progress, then closes all. */
  stop(): Promise<void>;
};

export type StreamsOptions = Pick<StreamOptions, "translateError" | "now"> & {
  identify: Identification["ofUpgrade"];
  hosts: ReadonlySet<string>;
  refuseForged: HttpServer["refuseForged"];
  reportRequest: HttpServer["reportRequest"];
  metrics: Metrics;
};

/** How often identities and connections are checked. A revocation is noticed at once, without it. */
const CHECK_EVERY_MS = 5_000;
/** The kernel finds a dead connection after this and ten more seconds, without waking this process. */
const KEEPALIVE_MS = 25_000;
const STOP_WITHIN_MS = 3_000;
/** An agent has one, and a second while it moves. A compromised node must not exhaust the memory that all nodes share. */
export const MOST_OF_ONE_NODE = 8;
const streamPath = new RegExp(`^/internal/v1/nodes/([0-9a-f-]{36})${STREAM_PATH}$`);

export function serveStreams(api: NodeApi, options: StreamsOptions): Streams {
  const { http, log } = api;
  const { metrics, reportRequest, translateError, now } = options;
  const open = new Set<OpenStream>();
  /** One that answers no close frame is disconnected soon. Not among ws's types. */
  const closing = { closeTimeout: 2_000 };
  const server = new WebSocketServer({
    ...{ noServer: true, clientTracking: false, perMessageDeflate: false, maxPayload: MOST_FRAME_BYTES },
    ...closing,
  });
  const ends = new Map<StreamEnd, number>();
  const ofNode = new Map<string, number>();
  const count = (nodeId: string, change: 1 | -1) => {
    const left = (ofNode.get(nodeId) ?? 0) + change;
    if (left > 0) ofNode.set(nodeId, left);
    else ofNode.delete(nodeId);
  };
  metrics.gaugeByReason(
    "holdfast_node_connections",
    "Agents that wait for work here, by their link",
    async () => ({
      stream: open.size,
      poll: api.held.size,
    }),
  );
  metrics.totalsBy("reason", "holdfast_node_streams_ended_total", "Streams of agents that have ended", () =>
    Object.fromEntries(ends),
  );

  const admit = async (request: IncomingMessage, correlationId: string) => {
    const path = (request.url ?? "/").split("?")[0]?.toLowerCase() ?? "";
    const [, nodeId] = streamPath.exec(path) ?? [];
    if (nodeId === undefined) throw new ApiError("route_not_found");
    if (api.isDraining()) throw new ApiError("shutting_down", { headers: { "retry-after": "1" } });
    if (!isAllowedHost(request.headers.host, options.hosts)) throw new ApiError("host_refused");
    options.refuseForged(request, correlationId);
    const identified = await options.identify(request, nodeId, correlationId);
    if ((ofNode.get(nodeId) ?? 0) >= MOST_OF_ONE_NODE) {
      throw new ApiError("rate_limit_exceeded", {
        message: `This node already has ${MOST_OF_ONE_NODE} streams open.`,
        headers: { "retry-after": "1" },
      });
    }
    return identified;
  };

  const explained = (error: unknown, correlationId: string): ApiError => {
    if (error instanceof ApiError) return error;
    const translated = translateError(error);
    if (translated) return translated;
    log.error({ err: error, correlation_id: correlationId }, "a stream could not be opened: unhandled error");
    return new ApiError("internal_error");
  };

  const onUpgrade = (request: IncomingMessage, duplex: Duplex, head: Buffer) => {
    duplex.on("error", () => duplex.destroy());
    const correlationId = correlationIdOf(request);
    admit(request, correlationId).then(
      ({ identity, presented }) =>
        server.handleUpgrade(request, duplex, head, (socket) => {
          (duplex as Socket).setKeepAlive(true, KEEPALIVE_MS);
          count(identity.id, 1);
          const stream: OpenStream = openStream(api, {
            ...{ socket, identity, presented, reportRequest, translateError, now },
            onClosed: (end) => {
              count(identity.id, -1);
              open.delete(stream);
              ends.set(end, (ends.get(end) ?? 0) + 1);
              log.debug({ node_id: identity.id, instance_id: identity.instanceId, reason: end }, "stream closed");
            },
          });
          open.add(stream);
          // Opened while the process began to stop.
          if (api.isDraining()) stream.send({ move: true });
        }),
      (error: unknown) => refuseUpgrade(duplex, explained(error, correlationId), correlationId),
    );
  };
  server.on("wsClientError", (_error, duplex, request) => {
    const details = { fields: [{ field: "headers", problem: "not a WebSocket upgrade of version 13" }] };
    refuseUpgrade(duplex, new ApiError("invalid_request", { details }), correlationIdOf(request));
  });
  http.server.on("upgrade", onUpgrade);
  const checks = setInterval(() => {
    for (const stream of [...open]) stream.check();
  }, CHECK_EVERY_MS).unref();

  return {
    startDraining() {
      for (const stream of open) stream.send({ move: true });
    },
    async stop() {
      http.server.off("upgrade", onUpgrade);
      clearInterval(checks);
      const late = new Promise<void>((resolve) => setTimeout(resolve, STOP_WITHIN_MS).unref());
      await Promise.race([Promise.all([...open].map((stream) => stream.idle())), late]);
      for (const stream of [...open]) stream.close("server_stopped");
      server.close();
    },
  };
}
