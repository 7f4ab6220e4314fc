// Reports requests that carry a node's certificate in a header without being allowed to: the first one immediately,
// those of the next minute together. So flooding a listener with them does not flood the audit.

export type Forgery = { address: string; correlationId: string };

export type Forgeries = {
  saw(listener: string, forgery: Forgery): void;
  /** Reports what is pending. */
  stop(): void;
};

const TOGETHER_MS = 60_000;

/** `count`: how many since the last time; the forgery is the last of them. */
export function watchForgeries(
  report: (listener: string, forgery: Forgery & { count: number }) => void,
  togetherMs = TOGETHER_MS,
): Forgeries {
  const waiting = new Map<string, { last: Forgery | undefined; count: number; timer: NodeJS.Timeout }>();

  const reportPending = (listener: string) => {
    const one = waiting.get(listener);
    if (one?.last) report(listener, { ...one.last, count: one.count });
    if (!one?.last) return void waiting.delete(listener);
    Object.assign(one, { last: undefined, count: 0 });
    one.timer.refresh();
  };

  return {
    saw(listener, forgery) {
      const one = waiting.get(listener);
      if (one) {
        one.last = forgery;
        one.count += 1;
        return;
      }
      const timer = setTimeout(() => reportPending(listener), togetherMs);
      timer.unref();
      waiting.set(listener, { last: undefined, count: 0, timer });
      report(listener, { ...forgery, count: 1 });
    },
    stop() {
      for (const [listener, { timer }] of waiting) {
        clearTimeout(timer);
        reportPending(listener);
        clearTimeout(timer);
      }
      waiting.clear();
    },
  };
}
