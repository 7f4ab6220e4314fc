// Reports the events of terminals to the api, in order for each of them. While the api is unreachable events wait
// here, up to a limit; beyond that the oldest are dropped.

import { hash } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { ApiError } from "@holdfast/contracts/errors";
import {
  reportTerminalEvents,
  reportUnclaimedToken,
  type TerminalEvent,
} from "@holdfast/contracts/internal/endpoints";
import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";
import type { Log } from "@holdfast/service/log";
import type { ApiLink } from "./link.ts";

export type Outbox = {
  report(sessionId: string, event: TerminalEvent): void;
  /** For a connection whose token could not be claimed; the token itself is not stored. */
  reportUnclaimed(token: string, failed: Failed): void;
  /** Events without a response. */
  waiting(): number;
  /** Resolves when everything was reported, or the time is over. */
  flush(withinMs: number): Promise<void>;
  stop(): void;
};

type Failed = Extract<TerminalEvent, { type: "failed" }>;
/** Of a terminal, by its id; or of a token, by its hash. */
type Subject = { session_id: string } | { token_hash: string };

const BATCH = 32;
const MOST_WAITING = 20_000;
const again: BackoffPolicy = { firstMs: 200, maxMs: 5_000 };

export function createOutbox(options: {
  api: Pick<ApiLink, "ask" | "instanceId">;
  log: Log;
  most?: number;
}): Outbox {
  const { api, log, most = MOST_WAITING } = options;
  /** In order of the first event that waits; each has at most one request in progress. */
  const queues = new Map<string, TerminalEvent[]>();
  const stopped = new AbortController();
  const { signal } = stopped;
  let waiting = 0;
  let emptied = Promise.withResolvers<void>();

  const post = async (subject: Subject, events: TerminalEvent[]) => {
    if ("session_id" in subject) {
      const body = { events, gateway_id: api.instanceId };
      return api.ask(reportTerminalEvents, { params: subject, body, signal });
    }
    for (const failed of events as Failed[]) {
      const body = { ...subject, failed, gateway_id: api.instanceId };
      await api.ask(reportUnclaimedToken, { body, signal });
    }
  };

  const send = async (key: string, subject: Subject, queue: TerminalEvent[]) => {
    // Events of one turn are sent together.
    await Promise.resolve();
    for (let failures = 0; queue.length > 0 && !signal.aborted; ) {
      const events = queue.slice(0, BATCH);
      try {
        await post(subject, events);
      } catch (error) {
        if (!(error instanceof ApiError && error.status < 500)) {
          await wait(backoffDelay(again, failures), undefined, { signal, ref: false }).catch(() => undefined);
          failures += 1;
          continue;
        }
        log.warn({ ...subject, reason: error.code }, "the api refused an event of a terminal");
      }
      failures = 0;
      // Some of them may have been dropped meanwhile.
      const done = new Set(events);
      const left = queue.filter((event) => !done.has(event));
      waiting -= queue.length - left.length;
      queue.splice(0, queue.length, ...left);
    }
    queues.delete(key);
    if (queues.size === 0) emptied.resolve();
  };

  const dropOldest = () => {
    for (const [subject, queue] of queues) {
      if (queue.length === 0) continue;
      queue.shift();
      waiting -= 1;
      log.warn({ subject }, "dropped an event of a terminal: the api has been unreachable for too long");
      return;
    }
  };

  const enqueue = (key: string, subject: Subject, event: TerminalEvent) => {
    if (signal.aborted) return;
    if (waiting >= most) dropOldest();
    waiting += 1;
    const present = queues.get(key);
    if (present) return void present.push(event);
    if (queues.size === 0) emptied = Promise.withResolvers();
    const queue = [event];
    queues.set(key, queue);
    void send(key, subject, queue);
  };

  return {
    report: (session_id, event) => enqueue(session_id, { session_id }, event),
    reportUnclaimed(token, failed) {
      const token_hash = hash("sha256", token, "base64url");
      enqueue(token_hash, { token_hash }, failed);
    },
    waiting: () => waiting,
    async flush(withinMs) {
      if (queues.size === 0) return;
      const late = new AbortController();
      await Promise.race([
        emptied.promise,
        wait(withinMs, undefined, { signal: late.signal }).catch(() => undefined),
      ]);
      late.abort();
    },
    stop: () => stopped.abort(),
  };
}
