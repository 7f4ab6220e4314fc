// The gateway process: live streams, nothing durable. Terminals attach to its listeners; it has no
// access to the database, and asks the api for everything it must know.

import { ApiError } from "@holdfast/contracts/errors";
import { gatewayListeners, LISTENER_HEADER } from "@holdfast/contracts/headers";
import { TERMINAL_PATH } from "@holdfast/contracts/terminal-frames";
import type { RunningProcess } from "@holdfast/kit/lifecycle";
import type { Values } from "@holdfast/kit/settings";
import type { Readiness } from "@holdfast/service/health";
import { createHttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import { createMetrics } from "@holdfast/service/metrics";
import { checkExposure } from "@holdfast/service/settings";
import { watchGatewayForgeries } from "./services/forgeries.ts";
import { gatewaySettings } from "./settings.ts";
import { publicHosts } from "./terminals/addresses.ts";
import { openTerminals, type Terminals } from "./terminals/open.ts";

export async function startGateway(settings: Values<typeof gatewaySettings>, log: Log): Promise<RunningProcess> {
  checkExposure(settings, gatewaySettings.bind.env);
  const metrics = createMetrics("gateway");
  const forgeries = watchGatewayForgeries(log);
  let terminals: Terminals | undefined;
  const http = createHttpServer({
    process: "gateway",
    exposure: settings,
    hosts: publicHosts(settings),
    log,
    metrics,
    bodyLimit: 64 * 1024,
    onForged: (forgery) => forgeries.saw("gateway", forgery),
    readiness: async () => terminals?.readiness() ?? notYet(settings.serviceToken),
  });
  http.app.addHook("onRequest", (request, reply, done) => {
    reply.header(LISTENER_HEADER, gatewayListeners.public);
    // A page of the api tells by it whether it reaches the gateway at all; the answer says nothing more.
    if (request.routeOptions.url === "/healthz") reply.headers(readableByPages);
    done();
  });
  // An upgrade does not come here: this is for whoever asks without one, or while there are no terminals.
  http.app.get(TERMINAL_PATH, () => {
    if (settings.serviceToken === undefined) throw new ApiError("terminal_gateway_missing");
    throw new ApiError("invalid_request", { message: "Only WebSockets are opened here." });
  });
  const publicPort = await http.listen({ port: settings.port, portSetting: gatewaySettings.port.env });
  log.info({ port: publicPort }, "gateway listens");
  const { serviceToken: token } = settings;
  if (token === undefined) {
    log.warn(`there are no terminals: ${gatewaySettings.serviceToken.env} is not set`);
    return { ports: { public: publicPort }, stop: () => http.stop() };
  }
  const opened = await openTerminals({
    ...{ settings, token, publicPort, forgeries, log, metrics },
    http: http.app.server,
    refuseForged: http.refuseForged,
  });
  terminals = opened;
  return {
    ports: { public: publicPort, node: opened.port },
    async stop() {
      forgeries.stop();
      await opened.stop();
      await http.stop();
    },
  };
}

const readableByPages = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": LISTENER_HEADER,
};

function notYet(token: string | undefined): Readiness {
  const reason =
    token === undefined ? `${gatewaySettings.serviceToken.env} is not set` : "the gateway is starting";
  return { ready: false, checks: { terminals: { ok: false, reason } } };
}
