// The internal listener, at which workers dispatch steps. Plain HTTP on a loopback address only; beyond that TLS, with the
// configured certificate or else with the gateway's own of Holdfast's CA.

import type { Server } from "node:https";
import { ApiError, type ErrorCode } from "@holdfast/contracts/errors";
import { dispatchPaths, MOST_DISPATCH_BYTES } from "@holdfast/contracts/execution/dispatch";
import { UsageError } from "@holdfast/kit/settings";
import { createHttpServer, type HttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import type { Metrics } from "@holdfast/service/metrics";
import { hostHeadersOf, listenerNames } from "@holdfast/service/node-identity/names";
import { bareExposure, isLoopback, readTls } from "@holdfast/service/settings";
import type { ServiceIdentity } from "../api-link/enroll.ts";
import { inCapitals } from "../execution/capitals.ts";

export type InternalPlace = {
  internalBind: string;
  internalUrl: string | undefined;
  tlsCertFile: string | undefined;
  tlsKeyFile: string | undefined;
};

export type InternalListener = {
  listen: HttpServer["listen"];
  use(identity: ServiceIdentity): void;
  isUsable(): boolean;
  stop(): Promise<void>;
};

/** What the gateway's certificate must be valid for. */
export function internalNames({ internalBind, internalUrl }: InternalPlace): string[] {
  return listenerNames({ bind: internalBind, url: internalUrl });
}

/** Tokens and secrets would be readable on the network. */
export function checkInternalPlace({ internalBind, internalUrl }: InternalPlace): void {
  if (isLoopback(internalBind) || !internalUrl?.startsWith("http:")) return;
  throw new UsageError(
    `HOLDFAST_GATEWAY_INTERNAL_BIND is ${internalBind}, which other machines can reach, but HOLDFAST_GATEWAY_HTTP_URL ` +
      `is ${internalUrl}, without TLS. Set an https:// URL, or bind to 127.0.0.1.`,
  );
}

export function createInternalListener(options: {
  place: InternalPlace;
  addRoutes(app: HttpServer["app"]): void;
  log: Log;
  metrics: Metrics;
}): InternalListener {
  const { place, log, metrics } = options;
  const isPlain = isLoopback(place.internalBind);
  const configured = isPlain ? undefined : readTls({ ...bareExposure(place.internalBind), ...place });
  let isUsable = isPlain || configured !== undefined;
  const http = createHttpServer({
    process: "gateway",
    exposure: bareExposure(place.internalBind),
    ...(isPlain ? {} : { tls: { minVersion: "TLSv1.2" as const, ...configured } }),
    hosts: hostHeadersOf(internalNames(place)),
    log,
    metrics,
    bodyLimit: MOST_DISPATCH_BYTES,
    routine,
    forPrograms: true,
    rephrase: (error) => inCapitals(rephrased(error)),
  });
  options.addRoutes(http.app);
  return {
    listen: http.listen,
    use({ certificate, key }) {
      if (isPlain || configured) return;
      (http.app.server as unknown as Server).setSecureContext({ cert: certificate, key, minVersion: "TLSv1.2" });
      isUsable = true;
    },
    isUsable: () => isUsable,
    stop: http.stop,
  };
}

/** These have a line of their own, with what became of the request. */
const routine: ReadonlySet<string> = new Set([dispatchPaths.dispatch, dispatchPaths.dispatchAsync]);

/** In the words that callers know. */
const otherWords: Partial<Record<ErrorCode, ErrorCode>> = {
  malformed_json: "bad_request",
  invalid_request: "bad_request",
  unsupported_media_type: "bad_request",
};

function rephrased(error: ApiError): ApiError {
  const { details, headers } = error;
  // A 503 would be taken for NO_AGENT_AVAILABLE.
  if (error.code === "shutting_down") {
    return new ApiError("gateway_dispatch_failed", { message: "The gateway is stopping.", details, headers });
  }
  if (error.code === "host_refused") {
    const nextStep =
      "Use the address of this listener, or set HOLDFAST_GATEWAY_HTTP_URL to the URL that workers use.";
    return new ApiError("host_refused", { nextStep, details, headers });
  }
  const code = otherWords[error.code];
  return code ? new ApiError(code, { message: error.message, nextStep: error.nextStep, details, headers }) : error;
}
