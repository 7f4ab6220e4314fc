// Bindings in Redis. Each expires unless its owner renews it, so those of a gateway that was killed disappear. The owner
// writes what is missing: after a flush or a restart of Redis its bindings are back by themselves. While Redis does not
// respond every question fails at once, and nothing that this gateway has is given up.

import { setTimeout as wait } from "node:timers/promises";
import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";
import type { Log } from "@holdfast/service/log";
import { createClient } from "@redis/client";
import { type Bindings, BindingsUnreachable, type Lost, type Owner } from "./bindings.ts";
import { RELEASE, RENEW, TAKE, TAKE_OVER } from "./scripts.ts";

/** Three renewals may be lost before a binding expires. */
const EXPIRY_MS = 15_000;
const RENEW_MS = 4_000;
/** How often it is tried while Redis does not respond. */
const TRY_AGAIN_MS = 500;
const ANSWER_MS = 1_000;
const RENEWED_AT_ONCE = 500;
const again: BackoffPolicy = { firstMs: 50, maxMs: 1_000 };
const PREFIX = "holdfast:terminal:";
const TAKEN_OVER = "holdfast:terminals:taken-over";

export type RedisBindingsOptions = {
  url: string;
  self: () => Owner;
  /** Another gateway has this terminal now. */
  onLost(sessionId: string, why: Lost): void;
  log: Log;
  /** Milliseconds; for tests. */
  renewMs?: number;
};

type Taker = "client" | "stream";
type Stored = Owner & { by: Taker };
/** `value`: as it is stored in Redis, once it is published. */
type Mine = { value: string; published: boolean };

export function redisBindings(options: RedisBindingsOptions): Bindings {
  const { self, onLost, log, renewMs = RENEW_MS } = options;
  const mine = new Map<string, Mine>();
  const stopped = new AbortController();
  let reachable: boolean | undefined;
  let wake = new AbortController();

  const client = createClient({
    url: options.url,
    disableOfflineQueue: true,
    socket: { connectTimeout: ANSWER_MS, reconnectStrategy: (tries) => backoffDelay(again, tries) },
  });
  const subscriber = client.duplicate();
  // The reason is logged by `noted`, once for each time that Redis is lost.
  for (const one of [client, subscriber]) one.on("error", () => undefined);
  client.on("ready", () => wake.abort());
  // The connection is lost: found out at once, not at the next renewal.
  client.on("error", () => reachable && wake.abort());
  const connected = client.connect().catch(() => undefined);
  void subscriber
    .connect()
    .then(() => subscriber.subscribe(TAKEN_OVER, (sessionId) => onTakenOver(sessionId)))
    .catch((error: Error) => log.warn({ reason: error.message }, "cannot follow which terminals are taken over"));

  const noted = (now: boolean, reason?: string) => {
    if (now === reachable) return;
    if (!now) log.error({ reason }, "Redis is unreachable: streams cannot be passed on between gateways");
    else log.info({ bindings: mine.size }, "Redis is reachable");
    reachable = now;
  };

  const run = async (script: string, keys: string[], values: string[]): Promise<unknown> => {
    if (!client.isReady) throw new BindingsUnreachable("not connected");
    return within(ANSWER_MS, client.eval(script, { keys, arguments: values }));
  };
  /** Fails at once while Redis is known to be unreachable. */
  const ask: typeof run = async (script, keys, values) => {
    if (reachable === false) throw new BindingsUnreachable("Redis is unreachable");
    return run(script, keys, values).catch((error: Error) => {
      noted(false, error.message);
      throw new BindingsUnreachable(error.message, { cause: error });
    });
  };

  const storedBy = (by: Taker) => JSON.stringify({ ...self(), by } satisfies Stored);
  const lose = (sessionId: string, why: Lost) => {
    if (mine.delete(sessionId)) onLost(sessionId, why);
  };

  const renewSome = async (batch: [string, Mine][]) => {
    const keys = batch.map(([id]) => PREFIX + id);
    const found = (await run(RENEW, keys, [
      String(EXPIRY_MS),
      ...batch.map(([, { value }]) => value),
    ])) as string[];
    for (const [index, [id, sent]] of batch.entries()) {
      // Released, or taken again meanwhile.
      if (mine.get(id) !== sent) continue;
      const other = found[index];
      if (!other) sent.published = true;
      else lose(id, sent.published && storedIn(other)?.by === "client" ? "taken_over" : "elsewhere");
    }
  };

  /** Only a hint: this gateway may have taken it again since. Without it, the next renewal finds the same. */
  const onTakenOver = (sessionId: string) => {
    const own = mine.get(sessionId);
    if (own) void renewSome([[sessionId, own]]).catch((error: Error) => noted(false, error.message));
  };

  const renew = async () => {
    if (mine.size === 0) await run("return 1", [], []);
    const all = [...mine];
    for (let start = 0; start < all.length; start += RENEWED_AT_ONCE)
      await renewSome(all.slice(start, start + RENEWED_AT_ONCE));
  };

  const keep = async () => {
    await within(ANSWER_MS, connected).catch(() => undefined);
    while (!stopped.signal.aborted) {
      wake = new AbortController();
      await renew().then(
        () => noted(true),
        (error: Error) => noted(false, error.message),
      );
      const woken = AbortSignal.any([wake.signal, stopped.signal]);
      const pause = reachable ? renewMs : TRY_AGAIN_MS;
      await wait(pause, undefined, { signal: woken, ref: false }).catch(() => undefined);
    }
  };
  const kept = keep();

  return {
    async ownerOf(sessionId) {
      const value = await ask("return redis.call('GET', KEYS[1])", [PREFIX + sessionId], []);
      return typeof value === "string" ? storedIn(value) : undefined;
    },
    async take(sessionId) {
      const own: Mine = { value: storedBy("stream"), published: false };
      mine.set(sessionId, own);
      const value = await ask(TAKE, [PREFIX + sessionId], [String(EXPIRY_MS), own.value]);
      own.published = value === own.value;
      const owner = storedIn(String(value));
      if (!owner || owner.id === self().id) return self();
      if (mine.get(sessionId) === own) mine.delete(sessionId);
      return owner;
    },
    async takeOver(sessionId) {
      const own: Mine = { value: storedBy("client"), published: false };
      mine.set(sessionId, own);
      await ask(TAKE_OVER, [PREFIX + sessionId], [String(EXPIRY_MS), own.value, TAKEN_OVER, sessionId]);
      own.published = true;
    },
    async release(sessionId) {
      const own = mine.get(sessionId);
      mine.delete(sessionId);
      if (own) await ask(RELEASE, [PREFIX + sessionId], [own.value]);
    },
    isPublished: (sessionId) => mine.get(sessionId)?.published === true,
    isReachable: () => reachable === true,
    size: () => mine.size,
    async stop() {
      stopped.abort();
      await kept;
      // Sends what is under way.
      await within(ANSWER_MS, client.close()).catch(() => undefined);
      for (const one of [client, subscriber]) {
        try {
          one.destroy();
        } catch {
          // It is closed.
        }
      }
    },
  };
}

function storedIn(value: string): Stored | undefined {
  try {
    const { id, url, by } = JSON.parse(value) as Stored;
    return typeof id === "string" && typeof url === "string" ? { id, url, by } : undefined;
  } catch {
    return undefined;
  }
}

async function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  const late = new AbortController();
  const timeout = wait(ms, undefined, { signal: late.signal }).then(() => {
    throw new BindingsUnreachable(`no answer within ${ms} ms`);
  });
  timeout.catch(() => undefined);
  try {
    return await Promise.race([answer, timeout]);
  } finally {
    late.abort();
  }
}
