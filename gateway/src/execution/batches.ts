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

  const givenUp = (batch: Waiting[], error: Error): Waiting[] => {
    const now = Date.now();
    return batch.filter((one) => {
      if (now < one.until) return true;
      done();
      one.onFailure(error, one.item);
      return false;
    });
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
        if (signal.aborted) return;
        if (isFinal(error)) {
          if (left.length > 1) {
            for (const one of left) await deliver([one]);
            return;
          }
          done();
          return left[0]?.onFailure(error, left[0].item);
        }
        left = givenUp(left, error as Error);
        await wait(backoffDelay(again, failures), undefined, { signal, ref: false }).catch(() => undefined);
        failures += 1;
      }
    }
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
      if (signal.aborted) return;
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
    stop: () => stopped.abort(),
  };
}

/** A refusal of the api that another attempt would not change. */
function isFinal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status < 500 && error.status !== 429;
}
