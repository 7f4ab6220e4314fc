// What a status of HTTP means for an action. Pure.

import type { ConnectorFailureCode } from "@holdfast/contracts/execution/connector-failures";
import type { HttpAnswer } from "../actions.ts";

type StatusFailure = { code: ConnectorFailureCode; retryAfterMs?: number | undefined; outcomeKnown: boolean };

/** A service that asks for more is asked again after this. */
const LONGEST_WAIT_MS = 60 * 60_000;

/** Undefined: the action succeeded. `now`: milliseconds. */
export function failureOfStatus(
  { status, headers }: Pick<HttpAnswer, "status" | "headers">,
  now: number,
): StatusFailure | undefined {
  if (status >= 200 && status < 300) return undefined;
  const refused = (code: ConnectorFailureCode): StatusFailure => ({ code, outcomeKnown: true });
  const later = (code: ConnectorFailureCode, outcomeKnown: boolean): StatusFailure => ({
    ...{ code, outcomeKnown },
    retryAfterMs: retryAfterOf(headers, now),
  });
  if (status >= 300 && status < 400) return refused("redirected");
  // GitHub answers 403 when its rate limit is used up.
  const limited = headers["x-ratelimit-remaining"] === "0" || headers["retry-after"] !== undefined;
  if (status === 429 || (status === 403 && limited)) return later("rate_limited", true);
  if (status === 401 || status === 403) return refused("secret_refused");
  if (status === 404 || status === 410) return refused("target_not_found");
  if (status === 408) return later("service_failed", false);
  if (status < 500) return refused("request_refused");
  // 501 and 503 say that nothing was done; behind any other, the work may have been done.
  return later("service_failed", status === 501 || status === 503);
}

function retryAfterOf(headers: Record<string, string>, now: number): number | undefined {
  const after = headers["retry-after"];
  const reset = headers["x-ratelimit-remaining"] === "0" ? headers["x-ratelimit-reset"] : undefined;
  const ms =
    after === undefined
      ? Number(reset) * 1000 - now
      : /^\d+$/.test(after)
        ? Number(after) * 1000
        : Date.parse(after) - now;
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LONGEST_WAIT_MS) : undefined;
}
