// Reconnects a shell to the gateway, with backoff, for as long as a shell may be disconnected.

import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";
import type { StreamFailure } from "./failures.ts";
import type { Stream } from "./stream.ts";

const policy: BackoffPolicy = { firstMs: 250, maxMs: 10_000 };

export type Redial = { stop(why: string): void };

export function startRedial<Kept>(options: {
  detachedMs: number;
  /** Rejects with a StreamFailure. */
  dial: (signal: AbortSignal) => Promise<Stream>;
  /** Describes the shell and its buffered output; rejects when it does not respond. */
  describe: () => Promise<Kept>;
  onConnected: (stream: Stream, kept: Kept) => void;
  onRetry: (code: string, detail: string) => void;
  /** `why` is undefined when the gateway no longer knows this terminal. */
  onAbandoned: (why: string | undefined) => void;
}): Redial {
  const abort = new AbortController();
  const { signal } = abort;
  const deadline = performance.now() + options.detachedMs;

  const attempt = async (failures: number): Promise<void> => {
    try {
      const dialled = await options.dial(signal);
      const kept = await options.describe().catch((error) => {
        dialled.close();
        throw error;
      });
      if (signal.aborted) return dialled.close();
      options.onConnected(dialled, kept);
    } catch (error) {
      if (signal.aborted) return;
      const { code, detail = (error as Error).message } = error as Partial<StreamFailure>;
      const isLate = performance.now() > deadline;
      if (isLate || code === "terminal_session_unknown") return options.onAbandoned(isLate ? detail : undefined);
      options.onRetry(code ?? "terminal_pty_failed", detail);
      timer = setTimeout(() => void attempt(failures + 1), backoffDelay(policy, failures));
    }
  };
  // Spread out, for a gateway with many terminals that is restarted.
  let timer = setTimeout(() => void attempt(0), Math.random() * policy.firstMs);

  return {
    stop(why) {
      clearTimeout(timer);
      abort.abort(new Error(why));
    },
  };
}
