// Hands requests to the api, which stores each and gives it to an agent. What comes together is one request to the api.

import { type DispatchBody, requestIdOf } from "@holdfast/contracts/execution/dispatch";
import { MOST_BATCH_BYTES, type RequestVerdict, requestExecutions } from "@holdfast/contracts/internal/executions";
import type { ApiLink } from "../../api-link/link.ts";
import { createBatches } from "../batches.ts";

export type Request = { body: DispatchBody; correlation_id: string };

export type Requests = {
  /** Rejects with ApiUnreachable after that time, or with what the api refused it with. */
  request(request: Request, options: { bytes: number; withinMs: number }): Promise<RequestVerdict>;
  stop(): void;
};

export function createRequests(options: {
  api: Pick<ApiLink, "ask" | "instanceId">;
  /** Called also when nobody waits for it any more. */
  onVerdict(verdict: RequestVerdict): void;
}): Requests {
  const { api, onVerdict } = options;
  const batches = createBatches<Request, RequestVerdict>({
    most: { items: 64, bytes: MOST_BATCH_BYTES, atOnce: 2 },
    keyOf: ({ body }) => requestIdOf(body),
    async send(requests, signal) {
      const { verdicts } = await api.ask(requestExecutions, {
        body: { gateway_id: api.instanceId, requests },
        signal,
      });
      return verdicts;
    },
  });
  return {
    request: (request, { bytes, withinMs }) =>
      new Promise((resolve, reject) => {
        batches.add({
          item: request,
          bytes,
          until: Date.now() + withinMs,
          onAnswer(verdict) {
            onVerdict(verdict);
            resolve(verdict);
          },
          onFailure: reject,
        });
      }),
    stop: batches.stop,
  };
}
