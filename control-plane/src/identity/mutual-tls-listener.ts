// A listener with mutual TLS, for nodes and for the other processes of this installation. It asks for a certificate and
// leaves the decision about it to an identity hook; its own certificate is issued in memory and replaced while it runs.

import type { Server } from "node:https";
import { ApiError } from "@holdfast/contracts/errors";
import type { Forgery } from "@holdfast/service/forgeries";
import { createHttpServer, type HttpOptions, type HttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import { hostHeadersOf, type ListenerPlace, listenerNames } from "@holdfast/service/node-identity/names";
import { askForCertificate } from "@holdfast/service/node-identity/tls";
import { bareExposure } from "@holdfast/service/settings";
import { isUnavailable } from "../database/connect.ts";
import type { Authority } from "./authority.ts";
import { makeListenerCertificate } from "./listener-certificate.ts";

export type MutualTlsOptions = {
  place: ListenerPlace;
  /** Signs the listener's own certificate and has signed those of its clients. */
  authority: Authority;
  /** 48 bytes that replicas share, so that a session can be resumed at any of them. */
  ticketKeys: Buffer;
  onForged?: (forgery: Forgery) => void;
  log: Log;
  metrics: Metrics;
  now?: () => number;
};

export type MutualTlsListener = {
  server: HttpServer;
  /** Replaces the server certificate when half of its lifetime is over; open connections stay. */
  renewIfDue(now: Date): Promise<boolean>;
};

export async function createMutualTlsListener(
  options: MutualTlsOptions,
  listener: {
    /** In logs, as in "the internal listener". */
    name: string;
    /** Of TLS sessions, which cannot be resumed at a listener with another purpose. */
    purpose: string;
    http: Pick<HttpOptions, "bodyLimit"> & Partial<HttpOptions>;
  },
): Promise<MutualTlsListener> {
  const { authority, ticketKeys, log, metrics, place, onForged, now = Date.now } = options;
  const names = listenerNames(place);
  const { purpose } = listener;
  const own = makeListenerCertificate({ authority, names, ticketKeys, purpose, now: new Date(now()) });
  const server = createHttpServer({
    process: "api",
    exposure: bareExposure(place.bind),
    tls: { ...askForCertificate, ...own.tls },
    hosts: hostHeadersOf(names),
    log,
    metrics,
    ...(onForged ? { onForged } : {}),
    translateError: translateUnavailable,
    ...listener.http,
  });
  return {
    server,
    async renewIfDue(at) {
      const notAfter = own.renewIfDue(server.app.server as unknown as Server, at);
      if (notAfter === undefined) return false;
      log.info({ not_after: notAfter }, `renewed the certificate of the ${listener.name} listener`);
      return true;
    },
  };
}

/** An error of the database as clients see it; undefined: another error. */
export function translateUnavailable(error: unknown): ApiError | undefined {
  return isUnavailable(error) ? new ApiError("database_unavailable") : undefined;
}
