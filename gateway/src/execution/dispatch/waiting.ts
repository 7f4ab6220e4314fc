// Callers that wait for the end of a request. They learn it from the agent's result when the agent is connected here, else
// from the api, which says when to ask. While somebody waits the api is also asked every two seconds.

import type { ExecutionResult } from "@holdfast/contracts/execution/dispatch";
import type { Ended, Results } from "./results.ts";

export type Waiter = {
  outcome: Promise<Ended>;
  /** Resolves when this gateway gives up, which says nothing about the request. */
  abandoned: Promise<Ended>;
  /** Nobody waits any more. */
  leave(): void;
};

export type Waiting = {
  /** Resolves with GATEWAY_UNAVAILABLE after that time: the api is away for longer than the request may take. */
  wait(requestId: string, withinMs: number): Waiter;
  /** It has ended with this result. */
  settle(requestId: string, result: ExecutionResult): void;
  /** It may have ended: asks the api, if somebody waits for it. */
  check(requestId: string): void;
  size(): number;
  /** Everybody who still waits gets GATEWAY_SHUTDOWN. */
  stop(): void;
};

type One = { resolve(ended: Ended): void; abandon(ended: Ended): void; since: number; until: number };

const POLL_MS = 2_000;
const READ_WITHIN_MS = 1_000;

export function createWaiting(results: Results): Waiting {
  const waiting = new Map<string, Set<One>>();
  /** Of requests about which the api is being asked; true: something happened meanwhile. */
  const checking = new Map<string, boolean>();
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  const settle = (requestId: string, ended: Ended) => {
    const all = waiting.get(requestId);
    waiting.delete(requestId);
    if (waiting.size === 0) stopTimer();
    for (const { resolve } of all ?? []) resolve(ended);
  };
  const stopTimer = () => {
    clearInterval(timer);
    timer = undefined;
  };

  const check = async (requestId: string) => {
    if (!waiting.has(requestId)) return;
    if (checking.has(requestId)) return void checking.set(requestId, true);
    do {
      checking.set(requestId, false);
      const ended = await results.read(requestId, READ_WITHIN_MS).catch(() => undefined);
      if (ended) settle(requestId, ended);
    } while (checking.get(requestId) === true && waiting.has(requestId));
    checking.delete(requestId);
  };

  const poll = () => {
    const now = Date.now();
    for (const [requestId, all] of waiting) {
      for (const one of all) {
        if (now < one.until) continue;
        leave(requestId, one);
        one.abandon(failed("GATEWAY_UNAVAILABLE"));
      }
      if ([...all].some(({ since }) => now - since >= POLL_MS)) void check(requestId);
    }
  };

  const leave = (requestId: string, one: One) => {
    const all = waiting.get(requestId);
    all?.delete(one);
    if (all?.size === 0) waiting.delete(requestId);
    if (waiting.size === 0) stopTimer();
  };

  return {
    wait(requestId, withinMs) {
      const { promise: outcome, resolve } = Promise.withResolvers<Ended>();
      const { promise: abandoned, resolve: giveUp } = Promise.withResolvers<Ended>();
      const abandon = (ended: Ended) => {
        giveUp(ended);
        resolve(ended);
      };
      if (isStopped) {
        abandon(failed("GATEWAY_SHUTDOWN"));
        return { outcome, abandoned, leave: () => undefined };
      }
      const since = Date.now();
      const one = { resolve, abandon, since, until: since + withinMs };
      waiting.set(requestId, (waiting.get(requestId) ?? new Set()).add(one));
      timer ??= setInterval(poll, POLL_MS).unref();
      return { outcome, abandoned, leave: () => leave(requestId, one) };
    },
    settle: (requestId, result) => settle(requestId, { result, no_agent: null }),
    check: (requestId) => void check(requestId),
    size: () => waiting.size,
    stop() {
      isStopped = true;
      for (const all of waiting.values()) for (const { abandon } of all) abandon(failed("GATEWAY_SHUTDOWN"));
      waiting.clear();
      stopTimer();
    },
  };
}

function failed(error: "GATEWAY_SHUTDOWN" | "GATEWAY_UNAVAILABLE"): Ended {
  return { result: { status: "failed", error }, no_agent: null };
}
