// Requests to the api that carry many things of a kind: what comes together in a turn, or while earlier requests are under
// way, is one request. Kept in order; without a response it is sent again until there is one, or its time is over.

import { setTimeout as wait } from "node:timers/promises";
import { ApiError } from "@holdfast/contracts/errors";
import { type BackoffPolicy, backoffDelay } from "@holdfast/kit/backoff";
import { ApiUnreachable } from "../api-link/client.ts";

export type Batched<Item, Answer> = {
  item: Item;
  /** Roughly, as JSON. */
  bytes: number;
  /** Given up after this time, by `Date.now()`; Infinity: never. */
  until: number;
  onAnswer(answer: Answer, item: Item): void;
  /** The api refused it (ApiError), or could not be reached in time (ApiUnreachable). */
  onFailure(error: Error, item: Item): void;
};

export type Batches<Item, Answer> = {
  add(batched: Batched<Item, Answer>): void;
  /** Items without an answer. */
  waiting(): number;
  /** Resolves when every item has its answer, or the time is over. */
  flush(withinMs: number): Promise<void>;
  /** Whatever has no answer yet fails. */
  stop(): void;
};

export type BatchOptions<Item, Answer> = {
  /** Resolves with one answer for each item, in order. */
  send(items: Item[], signal: AbortSignal): Promise<readonly Answer[]>;
  most: { items: number; bytes: number; atOnce: number };
  /** Two with the same key are never in one request. */
  keyOf?(item: Item): string;
};

const again: BackoffPolicy = { firstMs: 100, maxMs: 2_000 };

export function createBatches<Item, Answer>(options: BatchOptions<Item, Answer>): Batches<Item, Answer> {
  const { most, keyOf } = options;
  type Waiting = Batched<Item, Answer>;
  let queue: Waiting[] = [];
  const stopped = new AbortController();
  const { signal } = stopped;
  let underWay = 0;
  let waiting = 0;
  let scheduled = false;
  let emptied: PromiseWithResolvers<void> | undefined;

  const done = () => {
    waiting -= 1;
    if (waiting === 0) emptied?.resolve();
  };

  /** The oldest ones that fit into one request; the first always does. */
  const take = (): Waiting[] => {
    const taken: Waiting[] = [];
    const keys = new Set<string>();
    let bytes = 0;
    for (const one of queue) {
      const key = keyOf?.(one.item);
      const fits = taken.length < most.items && bytes + one.bytes <= most.bytes;
      if (taken.length > 0 && (!fits || (key !== undefined && keys.has(key)))) break;
      if (key !== undefined) keys.add(key);
      bytes += one.bytes;
      taken.push(one);
    }
    queue = queue.slice(taken.length);
    return taken;
  };

  const answered = (batch: Waiting[], answers: readonly Answer[]) => {
    batch.forEach((one, index) => {
      done();
      const answer = answers[index];
      if (answer === undefined) one.onFailure(new ApiUnreachable("the api's answer is incomplete"), one.item);
      else one.onAnswer(answer, one.item);
    });
  };

  const fail = (batch: Waiting[], error: Error) => {
    for (const one of batch) {
      done();
      one.onFailure(error, one.item);
    }
  };

  /** Those whose time is not over. */
  const patient = (batch: Waiting[], error: Error): Waiting[] => {
    const now = Date.now();
    fail(
      batch.filter(({ until }) => until <= now),
      error instanceof ApiUnreachable ? error : new ApiUnreachable(error.message, { cause: error }),
    );
    return batch.filter(({ until }) => until > now);
  };

  /** Until every item has an answer. What the api refuses is sent item by item, so that one cannot spoil the others. */
  const deliver = async (batch: Waiting[]): Promise<void> => {
    let left = batch;
    for (let failures = 0; left.length > 0 && !signal.aborted; ) {
      try {
        const answers = await options.send(
          left.map(({ item }) => item),
          signal,
        );
        return answered(left, answers);
      } catch (error) {
        if (isFinal(error)) {
          if (left.length === 1) return fail(left, error);
          for (const one of left) await deliver([one]);
          return;
        }
        left = patient(left, error as Error);
        if (left.length === 0 || signal.aborted) break;
        await wait(backoffDelay(again, failures), undefined, { signal, ref: false }).catch(() => undefined);
        failures += 1;
      }
    }
    fail(left, stopping());
  };

  const pump = () => {
    scheduled = false;
    while (queue.length > 0 && underWay < most.atOnce && !signal.aborted) {
      underWay += 1;
      void deliver(take()).finally(() => {
        underWay -= 1;
        pump();
      });
    }
  };

  return {
    add(batched) {
      if (signal.aborted) return batched.onFailure(stopping(), batched.item);
      waiting += 1;
      queue.push(batched);
      if (scheduled || underWay >= most.atOnce) return;
      scheduled = true;
      setImmediate(pump);
    },
    waiting: () => waiting,
    async flush(withinMs) {
      if (waiting === 0) return;
      emptied = Promise.withResolvers();
      const late = new AbortController();
      await Promise.race([
        emptied.promise,
        wait(withinMs, undefined, { signal: late.signal }).catch(() => undefined),
      ]);
      late.abort();
    },
    stop() {
      stopped.abort();
      const left = queue;
      queue = [];
      fail(left, stopping());
    },
  };
}

function stopping(): ApiUnreachable {
  return new ApiUnreachable("the gateway is stopping");
}

/** A refusal of the content, which another attempt would not change; any other is about this gateway or the api. */
function isFinal(error: unknown): error is ApiError {
  return error instanceof ApiError && (error.status === 400 || error.status === 413);
}
