// Waits for rows with a revision to change, without a statement for each: a change made in this process is known at once,
// one made elsewhere comes as a signal, and once a second one statement reads everything that is awaited, in case a signal
// was lost.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import type { Signals, Topic } from "./signals.ts";

export type Revision = { id: string; revision: number; ended: boolean };

export type Awaited = { id: string; revision: number | undefined };
export type AwaitOptions = { waitMs: number; until?: "change" | "end"; signal?: AbortSignal };

export type Awaiting = {
  /** Resolves when the revision is another, the row has ended, or the time is over. */
  changed(row: Awaited, options: AwaitOptions): Promise<void>;
  /** Changes made in this process, which need not be read. */
  happened(changes: readonly Revision[]): void;
  stop(): Promise<void>;
};

type Waiter = { revision: number | undefined; until: "change" | "end"; resolve(): void };

const LOOK_EVERY_MS = 1_000;
/** The last changes are remembered: one may have happened after the caller read the row and before it waits. */
const MOST_REMEMBERED = 5_000;

export function createAwaiting(options: {
  sql: Sql;
  signals: Signals;
  log: Log;
  /** The topic of the signals about these rows. */
  topic: Topic;
  /** Reads all rows that are awaited, in one statement; a row that does not exist is left out. */
  read(sql: Sql, ids: readonly string[]): Promise<Revision[]>;
}): Awaiting {
  const { sql, signals, log, topic, read } = options;
  const waiters = new Map<string, Set<Waiter>>();
  /** Awaited since the last statement; the next one reads them together. */
  let unseen = new Set<string>();
  /** The last change known of a row; null: it changed at another replica, and was not read yet. */
  const recent = new Map<string, Revision | null>();
  let looking: Promise<void> | undefined;
  let stopped = false;

  const remember = (id: string, change: Revision | null) => {
    recent.delete(id);
    recent.set(id, change);
    // A Map keeps insertion order.
    if (recent.size > MOST_REMEMBERED) for (const oldest of recent.keys().take(1)) recent.delete(oldest);
  };

  const settle = ({ id, revision, ended }: Revision) => {
    for (const waiter of waiters.get(id) ?? []) {
      // Without an initial revision, the first one read is used.
      waiter.revision ??= revision;
      if (ended || (waiter.until === "change" && waiter.revision !== revision)) waiter.resolve();
    }
  };

  const look = (ids: Iterable<string>) => {
    for (const id of ids) if (waiters.has(id)) unseen.add(id);
    if (unseen.size > 0) looking ??= lookTogether();
  };

  const lookTogether = async () => {
    await new Promise(setImmediate);
    while (unseen.size > 0 && !stopped) {
      const ids = [...unseen];
      unseen = new Set();
      try {
        const found = await read(sql, ids);
        for (const revision of found) settle(revision);
        const missing = new Set(ids).difference(new Set(found.map((one) => one.id)));
        // The row was removed or never existed: the caller finds out when it reads the row.
        for (const id of missing) for (const waiter of waiters.get(id) ?? []) waiter.resolve();
      } catch (error) {
        // The next statement comes within a second; nothing is lost until then.
        log.warn({ err: error, topic }, "could not read the awaited rows");
        break;
      }
    }
    looking = undefined;
  };

  const timer = setInterval(() => look(waiters.keys()), LOOK_EVERY_MS);
  timer.unref();
  const unsubscribe = [
    signals.subscribe(topic, (ids) => {
      // A row that has ended does not change any more.
      for (const id of ids) if (!recent.get(id)?.ended) remember(id, null);
      look(ids);
    }),
    signals.onReconnected(() => look(waiters.keys())),
  ];

  return {
    changed(task, { waitMs, until = "change", signal }) {
      if (stopped || waitMs <= 0 || signal?.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const waiter: Waiter = {
          revision: task.revision,
          until,
          resolve() {
            clearTimeout(deadline);
            signal?.removeEventListener("abort", waiter.resolve);
            const others = waiters.get(task.id);
            others?.delete(waiter);
            if (others?.size === 0) waiters.delete(task.id);
            resolve();
          },
        };
        const deadline = setTimeout(waiter.resolve, waitMs);
        signal?.addEventListener("abort", waiter.resolve);
        const others = waiters.get(task.id) ?? new Set();
        waiters.set(task.id, others);
        others.add(waiter);
        // It may have changed since the caller read it.
        const known = recent.get(task.id);
        if (known) settle(known);
        else if (known === null || task.revision === undefined) look([task.id]);
      });
    },
    happened(changes) {
      for (const change of changes) {
        remember(change.id, change);
        settle(change);
      }
    },
    async stop() {
      stopped = true;
      clearInterval(timer);
      for (const end of unsubscribe) end();
      for (const all of [...waiters.values()]) for (const waiter of [...all]) waiter.resolve();
      await looking;
    },
  };
}
