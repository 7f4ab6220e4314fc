// Reports requests that carried a forged certificate in a header to the api, for its audit. They are always logged;
// while the api is unreachable they are not stored.

import { reportForgedCertificates } from "@holdfast/contracts/internal/endpoints";
import { type Forgery, watchForgeries } from "@holdfast/service/forgeries";
import type { Log } from "@holdfast/service/log";
import type { ApiLink } from "./link.ts";

type Listener = "gateway" | "node_terminal";

export type GatewayForgeries = {
  saw(listener: Listener, forgery: Forgery): void;
  reportTo(api: Pick<ApiLink, "ask" | "instanceId">): void;
  stop(): void;
};

export function watchGatewayForgeries(log: Log): GatewayForgeries {
  let api: Pick<ApiLink, "ask" | "instanceId"> | undefined;
  const forgeries = watchForgeries((listener, { address, correlationId, count }) => {
    log.warn({ correlation_id: correlationId, listener, address, count }, "refused a certificate in a header");
    const report = { listener: listener as Listener, address, count, correlation_id: correlationId };
    api
      ?.ask(reportForgedCertificates, { body: { gateway_id: api.instanceId, ...report } })
      .catch((error: Error) => {
        log.error({ reason: error.message, listener }, "could not record a forged certificate in the audit");
      });
  });
  return {
    saw: forgeries.saw,
    reportTo(link) {
      api = link;
    },
    stop: forgeries.stop,
  };
}
