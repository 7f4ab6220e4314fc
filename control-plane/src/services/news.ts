// What every gateway must hear at once, whichever replica it follows. A line is a hint to act: it may
// be told twice, and a gateway that was not connected hears by `missed` what still matters.

import type { ServiceNews } from "@holdfast/contracts/service-endpoints";
import type { Log } from "@holdfast/service/log";

export type News = {
  tell(lines: readonly ServiceNews[]): void;
  /** Until aborted. */
  follow(send: (line: ServiceNews) => void, signal: AbortSignal): void;
  stop(): void;
};

const ALIVE_MS = 5_000;

export function createNews(options: { missed: () => Promise<readonly ServiceNews[]>; log: Log }): News {
  const followers = new Set<(line: ServiceNews) => void>();
  const alive = (): ServiceNews => ({ type: "alive", at: new Date().toISOString() });
  const timer = setInterval(() => tell([alive()]), ALIVE_MS);
  timer.unref();

  const tell = (lines: readonly ServiceNews[]) => {
    for (const send of followers) for (const line of lines) send(line);
  };

  return {
    tell,
    follow(send, signal) {
      if (signal.aborted) return;
      followers.add(send);
      signal.addEventListener("abort", () => followers.delete(send), { once: true });
      send(alive());
      options.missed().then(
        (lines) => lines.forEach(send),
        (error: unknown) => options.log.debug({ err: error }, "a gateway was not told what it missed"),
      );
    },
    stop() {
      clearInterval(timer);
      followers.clear();
    },
  };
}
