// Clocks of the page: everything that shows an age or what is left moves together. By the server's time.

import { useSyncExternalStore } from "react";
import { serverNow } from "../../clock.ts";

type Clock = { subscribe: (listener: () => void) => () => void; now: () => number };

function createClock(tickMs: number): Clock {
  const listeners = new Set<() => void>();
  let now = serverNow();
  let timer: ReturnType<typeof setInterval> | undefined;
  const tick = () => {
    now = serverNow();
    for (const each of listeners) each();
  };
  return {
    now: () => now,
    subscribe(listener) {
      listeners.add(listener);
      if (!timer) {
        now = serverNow();
        timer = setInterval(tick, tickMs);
      }
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        clearInterval(timer);
        timer = undefined;
      };
    },
  };
}

const clocks = { seconds: createClock(1_000), "quarter minutes": createClock(15_000) };

export function useNow(clock: keyof typeof clocks): number {
  return useSyncExternalStore(clocks[clock].subscribe, clocks[clock].now);
}
