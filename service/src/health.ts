// /healthz: the process is alive. /readyz: it can do its work. /metrics: for the machine itself only,
// because metrics reveal details of the installation.

import { ApiError } from "@holdfast/contracts/errors";
import type { FastifyInstance } from "fastify";
import type { Metrics } from "./metrics.ts";
import { isLoopback } from "./settings.ts";

export type Readiness = { ready: boolean; checks: Record<string, { ok: boolean; reason?: string }> };

export function addHealthRoutes(
  app: FastifyInstance,
  options: { metrics: Metrics; readiness: () => Promise<Readiness> },
): void {
  app.get("/healthz", async () => ({ status: "ok" }));

  app.get("/readyz", async (_request, reply) => {
    const { ready, checks } = await options.readiness();
    return reply.code(ready ? 200 : 503).send({ status: ready ? "ready" : "not_ready", checks });
  });

  app.get("/metrics", async (request, reply) => {
    const forwarded = request.headers["x-forwarded-for"] !== undefined || request.headers.forwarded !== undefined;
    if (forwarded || !isLoopback(request.ip)) throw new ApiError("route_not_found");
    const { registry } = options.metrics;
    return reply.type(registry.contentType).send(await registry.metrics());
  });
}
