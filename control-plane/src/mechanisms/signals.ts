// Notifies listeners that rows may have changed: in this process at once, in the other replicas by NOTIFY. A signal carries
// only ids: the listener reads the database. A notification can be lost, so no listener may depend on one; each also checks
// once a second and after `reconnected`.

import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";

/** The topics, with the kind of their ids. A module adds its topics where it declares them: `declare module`. */
// biome-ignore lint/suspicious/noEmptyInterface: filled by the modules.
export interface Topics {}
export type Topic = keyof Topics;

type Listener = (ids: readonly string[]) => void;

export type Signals = {
  /** Call after the commit, never before: a listener may read at once. */
  publish(topic: Topic, ids: readonly string[]): void;
  /** Returns an unsubscribe function. */
  subscribe(topic: Topic, listener: Listener): () => void;
  /** Notifications may have been missed until now. */
  onReconnected(listener: () => void): () => void;
  stop(): Promise<void>;
};

const CHANNEL = "holdfast";
/** The first signal is sent at once; those within this time after it are sent together. */
const COALESCE_MS = 2;
/** PostgreSQL takes payloads below 8,000 bytes. */
const MOST_IDS = 150;

type Message = { from: string; topics: Partial<Record<Topic, string[]>> };

type SignalOptions = {
  /**
   * Should commit without waiting for the disk: PostgreSQL runs a notification in its own transaction and
   * holds a lock over its commit, and a crash ends all listeners anyway.
   */
  notifier?: Sql;
  /** True if no other process listens to the topic: nothing is sent. */
  alone?: (topic: Topic) => boolean;
  /** Only publishes, and receives nothing from other processes. */
  deaf?: boolean;
};

export async function openSignals(system: Sql, log: Log, options: SignalOptions = {}): Promise<Signals> {
  const { notifier = system, alone = () => false, deaf = false } = options;
  const self = uuidv7();
  const listeners = new Map<Topic, Set<Listener>>();
  const reconnected = new Set<() => void>();
  const pending = new Map<Topic, Set<string>>();
  let quietUntil = 0;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  const deliver = (topic: Topic, ids: readonly string[]) => {
    for (const listener of listeners.get(topic) ?? []) listener(ids);
  };

  const flush = () => {
    timer = undefined;
    quietUntil = performance.now() + COALESCE_MS;
    for (const message of takeMessages(pending, self)) {
      notifier`SELECT pg_notify(${CHANNEL}, ${JSON.stringify(message)})`.catch((error: Error) => {
        // No listener depends on it; a missing database is reported elsewhere.
        if (!stopped) log.debug({ err: error }, "notification was not sent");
      });
    }
  };

  const receive = (payload: string) => {
    const { from, topics } = JSON.parse(payload) as Message;
    if (from === self) return;
    for (const [topic, ids] of Object.entries(topics)) deliver(topic as Topic, ids);
  };

  let first = true;
  const subscription = deaf
    ? undefined
    : await system.listen(CHANNEL, receive, () => {
        if (!first) for (const listener of reconnected) listener();
        first = false;
      });

  return {
    publish(topic, ids) {
      if (ids.length === 0 || stopped) return;
      deliver(topic, ids);
      if (alone(topic)) return;
      const waiting = pending.get(topic) ?? new Set();
      pending.set(topic, waiting);
      for (const id of ids) waiting.add(id);
      if (timer !== undefined) return;
      const wait = quietUntil - performance.now();
      if (wait <= 0) flush();
      else timer = setTimeout(flush, wait);
    },
    subscribe(topic, listener) {
      const all = listeners.get(topic) ?? new Set();
      listeners.set(topic, all);
      all.add(listener);
      return () => void all.delete(listener);
    },
    onReconnected(listener) {
      reconnected.add(listener);
      return () => void reconnected.delete(listener);
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      subscription?.unlisten();
    },
  };
}

function* takeMessages(pending: Map<Topic, Set<string>>, from: string): Generator<Message> {
  for (const [topic, ids] of pending) {
    const all = [...ids];
    for (let start = 0; start < all.length; start += MOST_IDS) {
      yield { from, topics: { [topic]: all.slice(start, start + MOST_IDS) } };
    }
  }
  pending.clear();
}
