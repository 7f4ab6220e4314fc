// Endpoints for gateways about requests, on the internal listener.

import {
  readExecutionResults,
  reportExecutionEvents,
  requestExecutions,
} from "@holdfast/contracts/internal/executions";
import type { ApiContext } from "../api/context.ts";
import { type InternalApi, internalRoute } from "../internal-api/route.ts";

export function executionInternalRoutes(internalApi: InternalApi, { executions }: ApiContext): void {
  internalRoute(internalApi, requestExecutions, async ({ body }) => ({
    verdicts: await executions.dispatch(
      body.requests.map((one) => ({
        body: one.body,
        correlationId: one.correlation_id,
        gatewayId: body.gateway_id,
      })),
    ),
  }));

  internalRoute(internalApi, reportExecutionEvents, async ({ body }) => ({
    verdicts: await executions.report(body.gateway_id, body.events),
  }));

  internalRoute(internalApi, readExecutionResults, async ({ body }) => ({
    ended: await executions.results(body.request_ids),
  }));
}
