// The node-facing listener: mutual TLS, and the identity hook decides about every request. Its own
// certificate is created in memory and replaced while it runs.

import { enrollNode, getTrustBundle } from "@holdfast/contracts/endpoints/enrollment";
import { getServerTime, recoverNode } from "@holdfast/contracts/endpoints/recovery";
import { ApiError } from "@holdfast/contracts/errors";
import { sendHeartbeat, waitForTasks } from "@holdfast/contracts/node/endpoints";
import type { HttpServer } from "@holdfast/service/http";
import { answerCanary, CANARY_PATH } from "@holdfast/service/node-identity/canary";
import { type ClientCertificates, clientCertificates } from "@holdfast/service/node-identity/client-certificates";
import { hostHeadersOf, listenerNames } from "@holdfast/service/node-identity/names";
import type { FastifyInstance } from "fastify";
import { agentRoutes } from "../agent-release/routes.ts";
import {
  createMutualTlsListener,
  type MutualTlsOptions,
  translateUnavailable,
} from "../identity/mutual-tls-listener.ts";
import type { NodeDirectory } from "../nodes/directory/standings.ts";
import type { NodeRefusal } from "../nodes/identity/refusals.ts";
import { paceHandshakes } from "./handshakes.ts";
import { identifyNodes } from "./identity-hook.ts";
import { type NodeApi, type NodeObserver, urlOf } from "./route.ts";
import { serveStreams } from "./streams/serve.ts";

export type NodeListener = {
  api: NodeApi;
  /** For the routes that need no certificate. */
  http: FastifyInstance;
  /** The client address of a request to these routes. */
  addressOf: ClientCertificates["addressOf"];
  listen: HttpServer["listen"];
  /** Replaces the server certificate when half of its lifetime is over; open connections stay. */
  renewIfDue(now: Date): Promise<boolean>;
  /** Held and new polls return nothing: nodes continue at another replica. */
  startDraining(): void;
  stopAccepting: HttpServer["stopAccepting"];
  stop(): Promise<void>;
};

export type NodeListenerOptions = MutualTlsOptions & {
  directory: NodeDirectory;
  /** The mark in certificates of trusted ingresses; omitted: there is no ingress. */
  ingressMark?: string | undefined;
  onNodeRefused?: (refusal: NodeRefusal) => void;
  methodsOf?: (path: string) => string[];
};

/** Routes without a certificate: how a machine gets an agent, and the agent a certificate; and the canary, which may lose its own. */
const openRoutes: ReadonlySet<string> = new Set([
  ...[getTrustBundle, enrollNode, getServerTime, recoverNode].map(({ path }) => path),
  CANARY_PATH,
  ...Object.values(agentRoutes),
]);
const BODY_LIMIT = 256 * 1024;
/** Requests that every node repeats: logging each success would hide all other lines. */
const routine: ReadonlySet<string> = new Set([...[sendHeartbeat, waitForTasks].map(urlOf), CANARY_PATH]);

export async function createNodeListener(options: NodeListenerOptions): Promise<NodeListener> {
  const { authority, directory, log, metrics } = options;
  const now = options.now ?? Date.now;
  const certificates = clientCertificates({
    issuers: () => authority,
    ingressMark: () => options.ingressMark,
    now,
  });
  const { server, renewIfDue } = await createMutualTlsListener(options, {
    name: "node-facing",
    purpose: "holdfast-node-api",
    http: {
      bodyLimit: BODY_LIMIT,
      forPrograms: true,
      routine,
      isHandedOver: certificates.isHandedOver,
      ...(options.methodsOf ? { methodsOf: options.methodsOf } : {}),
    },
  });
  const http = server.app;
  const observers: NodeObserver[] = [];
  const { identityOf, ofUpgrade } = identifyNodes(http, {
    certificates,
    directory,
    open: openRoutes,
    onRefused: metrics.countByCode(
      "holdfast_node_api_refusals_total",
      "Requests on the node-facing listener that the identity hook refused",
    ),
    onNodeRefused: (refusal) => {
      options.onNodeRefused?.(refusal);
      for (const one of observers) one.refusal?.(refusal);
    },
    onForeign: (claim) => {
      for (const one of observers) one.foreign?.(claim);
    },
    onForged: options.onForged,
    log,
    now,
  });
  http.get(CANARY_PATH, { exposeHeadRoute: false }, async (request) => answerCanary(certificates, request.raw));
  const held: NodeApi["held"] = new Map();
  let draining = false;
  const endWaiting = paceHandshakes(http.server);
  const api: NodeApi = {
    ...{ http, directory, log, identityOf, held, isDraining: () => draining },
    ...{ calls: new Map(), streamUses: [], pollLostListeners: [], observers, heartbeatParts: [] },
  };
  const streams = serveStreams(api, {
    ...{ identify: ofUpgrade, metrics, now },
    ...{ refuseForged: server.refuseForged, reportRequest: server.reportRequest },
    hosts: hostHeadersOf(listenerNames(options.place)),
    translateError: translateUnavailable,
  });
  http.addHook("preClose", async () => {
    endWaiting();
    for (const end of held.keys()) end(new ApiError("shutting_down", { headers: { "retry-after": "1" } }));
    await streams.stop();
  });

  return {
    api,
    http,
    addressOf: certificates.addressOf,
    listen: server.listen,
    renewIfDue,
    startDraining() {
      server.startDraining();
      draining = true;
      for (const end of [...held.keys()]) end();
      streams.startDraining();
    },
    stopAccepting: server.stopAccepting,
    stop: server.stop,
  };
}
