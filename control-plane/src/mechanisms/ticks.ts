// Ends waits together. A process that wakes up for one node at a time, a thousand times a second, spends more on waking
// than on the work: the same responses, sent a handful at a time, cost about half (bench/README.md).

export type Ticks = {
  /** Runs it then, or up to one tick later and with others if that is not soon. Returns a function that cancels it. */
  after(ms: number, work: () => void): () => void;
};

type Tick = { timer: NodeJS.Timeout; works: Set<() => void> };

export function createTicks(everyMs: number): Ticks {
  const ticks = new Map<number, Tick>();
  const fire = (number: number) => {
    const works = ticks.get(number)?.works ?? [];
    ticks.delete(number);
    for (const work of works) work();
  };
  return {
    after(ms, work) {
      if (ms < everyMs) {
        const timer = setTimeout(work, ms);
        return () => clearTimeout(timer);
      }
      const now = performance.now();
      const number = Math.ceil((now + ms) / everyMs);
      const tick = ticks.get(number) ?? {
        timer: setTimeout(fire, number * everyMs - now, number),
        works: new Set(),
      };
      ticks.set(number, tick);
      tick.works.add(work);
      return () => {
        tick.works.delete(work);
        if (tick.works.size > 0 || ticks.get(number) !== tick) return;
        clearTimeout(tick.timer);
        ticks.delete(number);
      };
    },
  };
}
