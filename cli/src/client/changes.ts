// Watches something on the server until it has ended, by long polling: each answer comes when there is
// something new. It waits for a server that is restarting, because the watched work continues.

import { setTimeout as delay } from "node:timers/promises";
import { backoffDelay } from "@holdfast/kit/backoff";
import { isTemporary } from "../failure.ts";

/** Below what the server allows and what `connect` waits for an answer. */
const WAIT_SECONDS = 20;
const ANSWER_WITHIN_MS = 30_000;
const retry = { firstMs: 100, maxMs: 2_000 };
/** How long the server may be unreachable before the command fails. */
const PATIENCE_MS = 60_000;

export type Wait = { wait_seconds: number; revision: number };

/** Every state after `first`, in order; some may be skipped when they follow each other quickly. */
export async function* changesOf<T extends { revision: number }>(
  first: T,
  options: {
    read: (wait: Wait, signal: AbortSignal) => Promise<T>;
    ended: (state: T) => boolean;
    signal?: AbortSignal;
  },
): AsyncGenerator<T> {
  const { read, ended, signal } = options;
  let seen = first;
  while (!ended(seen) && !signal?.aborted) {
    const next = await patiently(
      (deadline) => read({ wait_seconds: WAIT_SECONDS, revision: seen.revision }, deadline),
      signal,
    );
    if (next === undefined) return;
    if (next.revision !== seen.revision) yield next;
    seen = next;
  }
}

/** Waits for a server that is restarting. Undefined when it was asked to stop. */
export async function patiently<T>(
  ask: (deadline: AbortSignal) => Promise<T>,
  stop: AbortSignal | undefined,
): Promise<T | undefined> {
  const givenUpAt = performance.now() + PATIENCE_MS;
  for (let failures = 0; ; failures += 1) {
    const deadline = AbortSignal.timeout(ANSWER_WITHIN_MS);
    try {
      return await ask(stop ? AbortSignal.any([stop, deadline]) : deadline);
    } catch (error) {
      if (stop?.aborted) return undefined;
      if (!isTemporary(error) || performance.now() > givenUpAt) throw error;
      await delay(backoffDelay(retry, failures), undefined, { signal: stop }).catch(() => undefined);
    }
  }
}
