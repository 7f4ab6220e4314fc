// Natural batching: requests of one event-loop turn, or that arrive while an earlier statement runs, share the next
// statement. A single request does not wait; under load, statements grow instead of queues.

export type Batches<Item, Answer> = {
  add(item: Item): Promise<Answer>;
  /** Resolves when nothing is under way. */
  settled(): Promise<void>;
};

type Waiting<Item, Answer> = {
  item: Item;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
};

export function createBatches<Item, Answer>(options: {
  /** Maximum number of items in one batch. */
  most: number;
  /** Maximum number of concurrent batches. */
  atOnce: number;
  /** Minimum time between the starts of two batches, to gather frequent items. None by default. */
  restMs?: number;
  /** Items with the same key never share a batch, nor run concurrently. */
  keyOf(item: Item): string;
  /** Whether a failure would be the same for each item alone, as when the database is unavailable. */
  concernsAll(error: unknown): boolean;
  /** Returns one result for each item, in their order. */
  run(items: Item[]): Promise<Answer[]>;
}): Batches<Item, Answer> {
  let waiting: Waiting<Item, Answer>[] = [];
  const running = new Set<Promise<void>>();
  const busyKeys = new Set<string>();
  let scheduled = false;
  let startedAt = Number.NEGATIVE_INFINITY;

  const schedule = () => {
    if (scheduled || waiting.length === 0 || running.size >= options.atOnce) return;
    scheduled = true;
    const restMs = startedAt + (options.restMs ?? 0) - performance.now();
    if (restMs > 0) setTimeout(begin, restMs);
    else process.nextTick(begin);
  };

  const begin = () => {
    scheduled = false;
    const batch = take();
    // All waiting items have a busy key; the batch that is busy with it schedules again when it ends.
    if (batch.length === 0) return;
    startedAt = performance.now();
    start(batch);
    schedule();
  };

  const take = (): Waiting<Item, Answer>[] => {
    const batch: Waiting<Item, Answer>[] = [];
    const left: Waiting<Item, Answer>[] = [];
    for (const one of waiting) {
      const key = options.keyOf(one.item);
      if (batch.length < options.most && !busyKeys.has(key)) {
        busyKeys.add(key);
        batch.push(one);
      } else left.push(one);
    }
    waiting = left;
    return batch;
  };

  const start = (batch: Waiting<Item, Answer>[]) => {
    const work = runBatch(batch).finally(() => {
      running.delete(work);
      for (const { item } of batch) busyKeys.delete(options.keyOf(item));
      schedule();
    });
    running.add(work);
  };

  const runBatch = async (batch: Waiting<Item, Answer>[]) => {
    try {
      const answers = await options.run(batch.map(({ item }) => item));
      batch.forEach((one, index) => {
        one.resolve(answers[index] as Answer);
      });
    } catch (error) {
      // One failing item must not fail the others.
      if (batch.length > 1 && !options.concernsAll(error)) {
        for (const one of batch) await runBatch([one]);
      } else for (const one of batch) one.reject(error);
    }
  };

  return {
    add: (item) =>
      new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        schedule();
      }),
    async settled() {
      while (running.size > 0 || waiting.length > 0) {
        await (running.size > 0 ? Promise.all(running) : new Promise(setImmediate));
      }
    },
  };
}
