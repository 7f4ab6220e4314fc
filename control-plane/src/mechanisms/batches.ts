// Natural batching: what is asked for by one event and all that follows from it, or while an earlier
// statement runs, goes together in the next. Alone, a request waits for nobody; under load, statements grow
// instead of queues.

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
  /** In one batch. */
  most: number;
  /** Batches under way at a time. */
  atOnce: number;
  /** From the beginning of one batch to that of the next at least: what comes often is gathered. None by default. */
  restMs?: number;
  /** Items of one key never share a batch, nor run beside each other. */
  keyOf(item: Item): string;
  /** Whether a failure would be the same for each item alone, as when the database is away. */
  concernsAll(error: unknown): boolean;
  /** One answer for each item, in their order. */
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
    // Nothing taken: all that waits has a key that is busy, and whoever is busy with it schedules again.
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
      // One item that cannot be done must not take the others with it.
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
