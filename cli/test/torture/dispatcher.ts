// Dispatches steps as a careful worker does: the same request again until there is an answer, and never another one in its
// place.

import { setTimeout as wait } from "node:timers/promises";
import { DISPATCH_TOKEN_HEADER, dispatchPaths, ExecutionResult } from "@holdfast/contracts/execution/dispatch";

export type Step = { runId: string; nodeId: string; body: Record<string, unknown> };

export type Dispatcher = {
  /** Resolves with the result of the request, however often it has to ask. */
  run(step: Step): Promise<ExecutionResult>;
  /** The stored result; undefined if there is none. */
  result(step: Step): Promise<ExecutionResult | undefined>;
};

/** Errors that say that the gateway does not know yet how the request ended. */
const undecided = new Set(["GATEWAY_UNAVAILABLE", "GATEWAY_DISPATCH_FAILED", "GATEWAY_SHUTDOWN"]);

export function createDispatcher(options: { url: () => string; token: string; random: () => number }): Dispatcher {
  const headers = { [DISPATCH_TOKEN_HEADER]: options.token, "content-type": "application/json" };
  const ask = async (path: string, body?: unknown): Promise<{ status: number; json: unknown }> => {
    const response = await fetch(`${options.url()}${path}`, {
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      headers,
      signal: AbortSignal.timeout(60_000),
    });
    return { status: response.status, json: await response.json() };
  };
  const result = async (step: Step): Promise<ExecutionResult | undefined> => {
    const id = encodeURIComponent(`${step.runId}:${step.nodeId}:1`);
    const { status, json } = await ask(`${dispatchPaths.results}/${id}`);
    return status === 200 ? ExecutionResult.parse(json) : undefined;
  };
  /** Undefined: ask again. */
  const once = async (step: Step, together: boolean): Promise<ExecutionResult | undefined> => {
    const path = together ? dispatchPaths.dispatch : dispatchPaths.dispatchAsync;
    const { status, json } = await ask(path, step.body);
    if (status === 503 || status >= 500) return undefined;
    if (status >= 400) throw new Error(`the gateway refused a request: ${status} ${JSON.stringify(json)}`);
    if (!together) return result(step);
    const ended = ExecutionResult.parse(json);
    return ended.error !== undefined && undecided.has(ended.error) ? undefined : ended;
  };
  return {
    result,
    async run(step) {
      const together = options.random() < 0.7;
      for (;;) {
        const ended = await once(step, together).catch((error: Error) => {
          if (error.message.startsWith("the gateway refused")) throw error;
          return undefined;
        });
        if (ended) return ended;
        await wait(50 + options.random() * 100);
      }
    },
  };
}
