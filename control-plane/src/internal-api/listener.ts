// The internal listener: mutual TLS like the node-facing one, for the other processes of this
// installation. It shows a certificate of our own CA, replaced while it runs.

import type { Server } from "node:https";
import { ApiError } from "@holdfast/contracts/errors";
import { enrollIngress, enrollService } from "@holdfast/contracts/service-endpoints";
import type { Forgery } from "@holdfast/service/forgeries";
import { createHttpServer, type HttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import { hostHeadersOf, type ListenerPlace, listenerNames } from "@holdfast/service/node-identity/names";
import { askForCertificate } from "@holdfast/service/node-identity/tls";
import { bareExposure } from "@holdfast/service/settings";
import { isUnavailable } from "../database/connect.ts";
import type { Authority } from "../identity/authority.ts";
import { makeListenerCertificate } from "../identity/listener-certificate.ts";
import { identifyServices } from "./identity-hook.ts";
import type { InternalApi } from "./route.ts";

export type InternalListener = {
  api: InternalApi;
  listen: HttpServer["listen"];
  /** Replaces the server certificate when half of its life is over; connections go on. */
  renewIfDue(now: Date): Promise<boolean>;
  stop(): Promise<void>;
};

export type InternalListenerOptions = {
  place: ListenerPlace;
  /** Signs the listener's own certificate and has signed those of services. */
  authority: Authority;
  /** 48 bytes that replicas share, so that a session can be resumed at any of them. */
  ticketKeys: Buffer;
  onForged?: (forgery: Forgery) => void;
  log: Log;
  metrics: Metrics;
  now?: () => number;
};

/** Without a certificate: how a process gets one. */
const openRoutes: ReadonlySet<string> = new Set([enrollService.path, enrollIngress.path]);
const BODY_LIMIT = 64 * 1024;

export async function createInternalListener(options: InternalListenerOptions): Promise<InternalListener> {
  const { authority, log, metrics } = options;
  const now = options.now ?? Date.now;
  const names = listenerNames(options.place);
  const { ticketKeys } = options;
  const own = await makeListenerCertificate({
    ...{ authority, names, ticketKeys },
    purpose: "holdfast-internal-api",
    now: new Date(now()),
  });

  const server = createHttpServer({
    process: "api",
    exposure: bareExposure(options.place.bind),
    tls: { ...askForCertificate, ...own.tls },
    hosts: hostHeadersOf(names),
    log,
    metrics,
    bodyLimit: BODY_LIMIT,
    ...(options.onForged ? { onForged: options.onForged } : {}),
    translateError: (error) => (isUnavailable(error) ? new ApiError("database_unavailable") : undefined),
  });
  const http = server.app;
  const identityOf = identifyServices(http, {
    issuers: authority,
    open: openRoutes,
    onRefused: metrics.countByCode(
      "holdfast_internal_api_refusals_total",
      "Requests on the internal listener that the identity hook refused",
    ),
    now,
  });
  const held: InternalApi["held"] = new Set();
  http.addHook("preClose", async () => {
    for (const end of [...held]) end();
  });

  return {
    api: { http, identityOf, held },
    listen: server.listen,
    async renewIfDue(at) {
      const notAfter = await own.renewIfDue(http.server as unknown as Server, at);
      if (notAfter === undefined) return false;
      log.info({ not_after: notAfter }, "renewed the certificate of the internal listener");
      return true;
    },
    stop: server.stop,
  };
}
