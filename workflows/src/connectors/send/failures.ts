// What became of a connection that failed, and whether the action may have had its effect.

import { AddressRefused } from "@holdfast/kit/addresses";
import { ConnectorFailure } from "../actions.ts";

/** Before anything is connected: a refusal, a name that does not exist, or no answer in time. */
export async function resolvedOrRefused<T>(resolve: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const stopped = Promise.withResolvers<never>();
  const stop = () => stopped.reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  try {
    signal.throwIfAborted();
    return await Promise.race([resolve(), stopped.promise]);
  } catch (error) {
    if (error instanceof AddressRefused) throw new ConnectorFailure("address_refused", error.message);
    throw connectionFailure(error, { connected: false, signal });
  } finally {
    signal.removeEventListener("abort", stop);
    stopped.promise.catch(() => undefined);
  }
}

/** `connected`: something may have been sent. */
export function connectionFailure(
  error: unknown,
  { connected, signal }: { connected: boolean; signal: AbortSignal },
): ConnectorFailure {
  if (error instanceof ConnectorFailure) return error;
  const outcomeKnown = !connected;
  if (signal.aborted) {
    const timedOut = (signal.reason as Error | undefined)?.name === "TimeoutError" || signal.reason === "timeout";
    return new ConnectorFailure(timedOut ? "timed_out" : "cancelled", undefined, { outcomeKnown });
  }
  const { code } = error as { code?: unknown };
  // Codes only: messages of Node.js name addresses that the author of a workflow need not know.
  const detail = typeof code === "string" ? `${code}.` : undefined;
  if (code === "ERR_INVALID_CHAR" || code === "ERR_UNESCAPED_CHARACTERS") {
    return new ConnectorFailure("input_invalid", "A header or the URL has a character that is not allowed.");
  }
  return new ConnectorFailure(connected ? "connection_lost" : "unreachable", detail, { outcomeKnown });
}
