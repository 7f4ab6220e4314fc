// The gateway process: live streams, nothing durable. It has no access to the database, and asks the api for everything it
// must know. Without a service token it listens, and says why there are no terminals.

import { ApiError } from "@holdfast/contracts/errors";
import { EXECUTION_PATHS } from "@holdfast/contracts/execution/frames";
import { TERMINAL_PATH } from "@holdfast/contracts/terminal/frames";
import type { RunningProcess } from "@holdfast/kit/lifecycle";
import { UsageError, type Values } from "@holdfast/kit/settings";
import type { Readiness } from "@holdfast/service/health";
import type { Log } from "@holdfast/service/log";
import { type OwnProcess, unknownProcess } from "@holdfast/service/log-store/own-process";
import { createMetrics } from "@holdfast/service/metrics";
import { checkExposure } from "@holdfast/service/settings";
import { watchGatewayForgeries } from "./api-link/forgeries.ts";
import { checkInternalPlace } from "./listeners/internal-listener.ts";
import { createPublicListener } from "./listeners/public-listener.ts";
import { gatewaySettings } from "./settings.ts";
import { type Streams, startStreams } from "./streams.ts";

export async function startGateway(
  settings: Values<typeof gatewaySettings>,
  log: Log,
  own: OwnProcess = unknownProcess,
): Promise<RunningProcess> {
  checkExposure(settings, gatewaySettings.bind.env);
  checkInternalPlace(settings);
  checkTokens(settings);
  const { serviceToken: token } = settings;
  const metrics = createMetrics("gateway");
  const forgeries = watchGatewayForgeries(log);
  let streams: Streams | undefined;
  const publicListener = createPublicListener({
    settings,
    // An upgrade does not come here: this is for requests without one, or while there are no terminals.
    upgradeOnly: {
      [TERMINAL_PATH]: () => (token === undefined ? new ApiError("terminal_gateway_missing") : onlySockets()),
      ...Object.fromEntries(EXECUTION_PATHS.map((path) => [path, onlySockets])),
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
  const started = await startStreams({
    settings,
    token,
    publicListener,
    publicPort,
    forgeries,
    own,
    log,
    metrics,
  });
  streams = started;
  return {
    ports: {
      public: publicPort,
      node: started.port,
      ...(started.internalPort === undefined ? {} : { internal: started.internalPort }),
    },
    async stop() {
      forgeries.stop();
      await started.stop();
      await publicListener.stop();
    },
  };
}

function onlySockets(): ApiError {
  return new ApiError("invalid_request", { message: "Only WebSockets are opened here." });
}

/** Whoever dispatches steps must not be able to act as a gateway. */
function checkTokens({ serviceToken, dispatchToken }: Values<typeof gatewaySettings>): void {
  if (serviceToken === undefined || serviceToken !== dispatchToken) return;
  throw new UsageError(
    `${gatewaySettings.dispatchToken.env} (or GATEWAY_SERVICE_TOKEN) and ${gatewaySettings.serviceToken.env} are the same. ` +
      "Set two different secrets: one dispatches steps, the other proves who is a gateway.",
  );
}

function notReadyYet(token: string | undefined): Readiness {
  const reason =
    token === undefined ? `${gatewaySettings.serviceToken.env} is not set` : "the gateway is starting";
  return { ready: false, checks: { terminals: { ok: false, reason } } };
}
