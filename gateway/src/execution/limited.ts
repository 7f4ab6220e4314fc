// Runs at most so many at a time; the others wait for their turn, in order.

export function limited(most: number): <T>(run: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (run) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await run();
    } finally {
      // The turn passes to the next one, if there is one.
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}
