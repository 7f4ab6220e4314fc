// The gateway process: live streams, nothing durable. It has no access to the database, and asks the api for everything it
// must know. Without a service token it listens, and says why there are no terminals.

import { ApiError } from "@holdfast/contracts/errors";
import { TERMINAL_PATH } from "@holdfast/contracts/terminal/frames";
import type { RunningProcess } from "@holdfast/kit/lifecycle";
import type { Values } from "@holdfast/kit/settings";
import type { Readiness } from "@holdfast/service/health";
import type { Log } from "@holdfast/service/log";
import { createMetrics } from "@holdfast/service/metrics";
import { checkExposure } from "@holdfast/service/settings";
import { watchGatewayForgeries } from "./api-link/forgeries.ts";
import { createPublicListener } from "./listeners/public-listener.ts";
import { gatewaySettings } from "./settings.ts";
import { type Streams, startStreams } from "./streams.ts";

export async function startGateway(settings: Values<typeof gatewaySettings>, log: Log): Promise<RunningProcess> {
  checkExposure(settings, gatewaySettings.bind.env);
  const { serviceToken: token } = settings;
  const metrics = createMetrics("gateway");
  const forgeries = watchGatewayForgeries(log);
  let streams: Streams | undefined;
  const publicListener = createPublicListener({
    settings,
    // An upgrade does not come here: this is for requests without one, or while there are no terminals.
    upgradeOnly: {
      [TERMINAL_PATH]: () =>
        token === undefined
          ? new ApiError("terminal_gateway_missing")
          : new ApiError("invalid_request", { message: "Only WebSockets are opened here." }),
    },
    readiness: async () => streams?.readiness() ?? notReadyYet(token),
    onForged: (forgery) => forgeries.saw("gateway", forgery),
    log,
    metrics,
  });
  const publicPort = await publicListener.listen({
    port: settings.port,
    portSetting: gatewaySettings.port.env,
  });
  log.info({ port: publicPort }, "gateway listens");
  if (token === undefined) {
    log.warn(`there are no terminals: ${gatewaySettings.serviceToken.env} is not set`);
    return { ports: { public: publicPort }, stop: publicListener.stop };
  }
  const started = await startStreams({ settings, token, publicListener, publicPort, forgeries, log, metrics });
  streams = started;
  return {
    ports: { public: publicPort, node: started.port },
    async stop() {
      forgeries.stop();
      await started.stop();
      await publicListener.stop();
    },
  };
}

function notReadyYet(token: string | undefined): Readiness {
  const reason =
    token === undefined ? `${gatewaySettings.serviceToken.env} is not set` : "the gateway is starting";
  return { ready: false, checks: { terminals: { ok: false, reason } } };
}
