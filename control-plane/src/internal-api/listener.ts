// The internal listener: mutual TLS like the node-facing one, for the other processes of this
// installation. It presents a certificate of our own CA, which is replaced while it runs.

import { enrollIngress, enrollService } from "@holdfast/contracts/internal/endpoints";
import { executionInternalEndpoints } from "@holdfast/contracts/internal/executions";
import type { HttpServer } from "@holdfast/service/http";
import { createMutualTlsListener, type MutualTlsOptions } from "../identity/mutual-tls-listener.ts";
import { identifyServices } from "./identity-hook.ts";
import type { InternalApi } from "./route.ts";

export type InternalListener = {
  api: InternalApi;
  listen: HttpServer["listen"];
  /** Replaces the server certificate when half of its validity is over; connections stay open. */
  renewIfDue(now: Date): Promise<boolean>;
  stop(): Promise<void>;
};

/** Reached without a certificate: here a process gets one. */
const openRoutes: ReadonlySet<string> = new Set([enrollService.path, enrollIngress.path]);
const BODY_LIMIT = 64 * 1024;
/** So many that they are logged only when asked for. */
const routine: ReadonlySet<string> = new Set(executionInternalEndpoints.map(({ path }) => path));

export async function createInternalListener(options: MutualTlsOptions): Promise<InternalListener> {
  const { authority, metrics } = options;
  const now = options.now ?? Date.now;
  const { server, renewIfDue } = await createMutualTlsListener(options, {
    name: "internal",
    purpose: "holdfast-internal-api",
    http: { bodyLimit: BODY_LIMIT, routine },
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
    renewIfDue,
    stop: server.stop,
  };
}
