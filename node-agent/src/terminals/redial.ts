// Looks for a new way between a shell and the gateway: again and again, more slowly each time, for as long as a shell may
// be without one.

import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";
import type { StreamFailure } from "./failures.ts";
import type { Stream } from "./stream.ts";

const policy: BackoffPolicy = { firstMs: 250, maxMs: 10_000 };

export type Redial = { stop(why: string): void };

export function startRedial<Kept>(options: {
  detachedMs: number;
  /** Rejects with a StreamFailure. */
  dial: (signal: AbortSignal) => Promise<Stream>;
  /** What the shell has kept; rejects when it does not answer. */
  describe: () => Promise<Kept>;
  onConnected: (stream: Stream, kept: Kept) => void;
  onRetry: (code: string, detail: string) => void;
  /** Undefined: the gateway does not know this terminal any more. */
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
  // Not all at once when a gateway with many of them is restarted.
  let timer = setTimeout(() => void attempt(0), Math.random() * policy.firstMs);

  return {
    stop(why) {
      clearTimeout(timer);
      abort.abort(new Error(why));
    },
  };
}
