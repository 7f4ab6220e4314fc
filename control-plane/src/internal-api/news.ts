// News for every gateway, whichever replica it follows. A line is a hint to act: it may be sent twice, and a gateway that
// was not connected gets what is still relevant from `missed`.

import type { ServiceNews } from "@holdfast/contracts/internal/endpoints";
import type { Log } from "@holdfast/service/log";

export type News = {
  publish(lines: readonly ServiceNews[]): void;
  /** Leaves out what was published here under the same key within the last minutes. */
  publishOnce(lines: readonly { key: string; line: ServiceNews }[]): void;
  keepAlive(): void;
  /** Sends each line until `signal` is aborted. */
  follow(send: (line: ServiceNews) => void, signal: AbortSignal): void;
  stop(): void;
};

const REMEMBERED_MS = 120_000;

export function createNews(options: { missed: () => Promise<readonly ServiceNews[]>; log: Log }): News {
  const followers = new Set<(line: ServiceNews) => void>();
  const published = new Map<string, number>();
  const alive = (): ServiceNews => ({ type: "alive", at: new Date().toISOString() });

  const publish = (lines: readonly ServiceNews[]) => {
    for (const send of followers) for (const line of lines) send(line);
  };

  return {
    publish,
    publishOnce(lines) {
      const now = Date.now();
      publish(lines.filter(({ key }) => !published.has(key)).map(({ line }) => line));
      for (const { key } of lines) published.set(key, now);
      for (const [key, at] of published) if (at < now - REMEMBERED_MS) published.delete(key);
    },
    keepAlive: () => publish([alive()]),
    follow(send, signal) {
      if (signal.aborted) return;
      followers.add(send);
      signal.addEventListener("abort", () => followers.delete(send), { once: true });
      send(alive());
      options.missed().then(
        (lines) => lines.forEach(send),
        (error: unknown) => options.log.debug({ err: error }, "could not send a gateway the news that it missed"),
      );
    },
    stop: () => followers.clear(),
  };
}
