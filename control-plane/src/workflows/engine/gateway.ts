// Dispatches steps at the gateway's internal listener, with the dispatch token.

import { DISPATCH_TOKEN_HEADER, type DispatchBody, dispatchPaths } from "@holdfast/contracts/execution/dispatch";
import { executionOutcomes } from "@holdfast/contracts/execution/outcomes";
import type { Failure } from "@holdfast/workflows/run/events";

/** `unreachable`: nothing is known; the same request is sent again later, and never runs twice. */
export type Dispatched = "dispatched" | "unreachable" | { failure: Failure };

export type Gateway = (body: DispatchBody) => Promise<Dispatched>;

const TIME_LIMIT_MS = 15_000;

export function openGateway({ url, token }: { url: string | undefined; token: string | undefined }): Gateway {
  return async (body) => {
    if (!url || !token) return { failure: failureOf("GATEWAY_NOT_CONFIGURED") };
    let response: Response;
    try {
      response = await fetch(new URL(dispatchPaths.dispatchAsync, url), {
        method: "POST",
        headers: { "content-type": "application/json", [DISPATCH_TOKEN_HEADER]: token },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(TIME_LIMIT_MS),
      });
    } catch {
      return "unreachable";
    }
    if (response.ok) return "dispatched";
    const answer = (await response.json().catch(() => ({}))) as {
      code?: string;
      message?: string;
      retryable?: boolean;
    };
    if (response.status >= 500 && answer.code !== "NO_AGENT_AVAILABLE") return "unreachable";
    const { code = "GATEWAY_DISPATCH_FAILED", message = `The gateway answered ${response.status}.` } = answer;
    return { failure: { code, message } };
  };
}

export function failureOf(code: keyof typeof executionOutcomes): Failure {
  return { code, message: executionOutcomes[code].message };
}
