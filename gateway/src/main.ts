// The gateway process: live streams, nothing durable. Terminals and execution sockets attach to
// this listener; it has no access to the database.

import type { RunningProcess } from "@holdfast/kit/lifecycle";
import type { Values } from "@holdfast/kit/settings";
import { createHttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";
import { createMetrics } from "@holdfast/service/metrics";
import { checkExposure } from "@holdfast/service/settings";
import { gatewaySettings } from "./settings.ts";

export async function startGateway(settings: Values<typeof gatewaySettings>, log: Log): Promise<RunningProcess> {
  checkExposure(settings, gatewaySettings.bind.env);
  const http = createHttpServer({
    process: "gateway",
    exposure: settings,
    log,
    metrics: createMetrics("gateway"),
    bodyLimit: 64 * 1024,
    readiness: async () => ({ ready: true, checks: {} }),
  });
  const port = await http.listen({ port: settings.port, portSetting: gatewaySettings.port.env });
  log.info({ port }, "gateway listens");
  return { ports: { public: port }, stop: () => http.stop() };
}
