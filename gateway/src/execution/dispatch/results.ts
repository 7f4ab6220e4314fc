// Reads results from the api: what is asked for in a turn is one request.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import { readExecutionResults } from "@holdfast/contracts/internal/executions";
import type { ApiLink } from "../../api-link/link.ts";
import { createBatches } from "../batches.ts";

export type Ended = Pick<AnswerOf<typeof readExecutionResults>["ended"][number], "result" | "no_agent">;

export type Results = {
  /** Undefined: it has not ended. Rejects with ApiUnreachable after that time. */
  read(requestId: string, withinMs: number): Promise<Ended | undefined>;
  stop(): void;
};

/** A result may be a megabyte. */
const MOST_AT_ONCE = 32;

export function createResults(api: Pick<ApiLink, "ask" | "instanceId">): Results {
  const batches = createBatches<string, { ended: Ended | undefined }>({
    most: { items: MOST_AT_ONCE, bytes: Number.POSITIVE_INFINITY, atOnce: 4 },
    keyOf: (id) => id,
    async send(request_ids, signal) {
      const { ended } = await api.ask(readExecutionResults, {
        body: { gateway_id: api.instanceId, request_ids },
        signal,
      });
      const byId = new Map(ended.map((one) => [one.request_id, one]));
      return request_ids.map((id) => ({ ended: byId.get(id) }));
    },
  });
  return {
    read: (requestId, withinMs) =>
      new Promise((resolve, reject) => {
        batches.add({
          item: requestId,
          bytes: 0,
          until: Date.now() + withinMs,
          onAnswer: ({ ended }) => resolve(ended),
          onFailure: reject,
        });
      }),
    stop: batches.stop,
  };
}
