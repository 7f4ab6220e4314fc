// Repeats a piece of work. A failure is logged and the next turn comes as usual: reconcilers are
// idempotent and need no retry of their own.

import type { Log } from "@holdfast/service/log";

export type Periodic = { stop(): Promise<void> };

export function runPeriodically(options: {
  name: string;
  seconds: number;
  log: Log;
  work: () => Promise<void>;
}): Periodic {
  let stopped = false;
  let turn: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    turn = turn.then(async () => {
      if (stopped) return;
      try {
        await options.work();
      } catch (error) {
        options.log.warn({ err: error, reconciler: options.name }, "reconciler failed; it runs again next turn");
      }
    });
  }, options.seconds * 1000);
  return {
    async stop() {
      stopped = true;
      clearInterval(timer);
      await turn;
    },
  };
}
