// Keeps the embedded PostgreSQL running. When it dies it is started again; api and worker stay up
// and reconnect, because its address does not change.

import { setTimeout as delay } from "node:timers/promises";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "@holdfast/control-plane/database/embedded/start";
import { backoffDelay } from "@holdfast/kit/backoff";

export type SupervisedDatabase = {
  ownerUrl: string;
  version: string;
  stop(options: { hurry: AbortSignal }): Promise<void>;
};

const restart = { firstMs: 200, maxMs: 5_000 };
const healthyAfterMs = 30_000;

export async function superviseDatabase(options: {
  directory: string;
  runAs: string | undefined;
  /** Gives up the first start. */
  signal: AbortSignal;
  onProgress(text: string): void;
  report(text: string): void;
}): Promise<SupervisedDatabase> {
  const { directory, runAs, report } = options;
  const stopping = new AbortController();
  const first = await startEmbeddedPostgres({
    directory,
    runAs,
    signal: options.signal,
    onProgress: options.onProgress,
  });
  let running: EmbeddedPostgres | undefined = first;

  const keepRunning = async () => {
    let failures = 0;
    let reported = "";
    while (!stopping.signal.aborted) {
      const startedAt = Date.now();
      if (running) {
        const exit = await running.exited;
        running = undefined;
        if (stopping.signal.aborted) return;
        if (Date.now() - startedAt > healthyAfterMs) failures = 0;
        const how = exit.signal ?? `exit code ${exit.code}`;
        report(`PostgreSQL exited unexpectedly (${how}); restarting. Log: ${directory}/server.log`);
      }
      await delay(backoffDelay(restart, failures), undefined, { signal: stopping.signal }).catch(() => undefined);
      failures += 1;
      if (stopping.signal.aborted) return;
      running = await startEmbeddedPostgres({
        directory,
        runAs,
        mustExist: true,
        signal: stopping.signal,
        onProgress: report,
      }).catch((error: Error) => {
        // The same trouble every few seconds is said once.
        if (!stopping.signal.aborted && error.message !== reported) report(error.message);
        reported = error.message;
        return undefined;
      });
      if (running) reported = "";
    }
  };
  const ended = keepRunning();

  return {
    ownerUrl: first.ownerUrl,
    version: first.version,
    stop: async ({ hurry }) => {
      stopping.abort();
      const kill = () => void running?.stop({ hurry: true });
      hurry.addEventListener("abort", kill);
      await running?.stop({ hurry: hurry.aborted });
      await ended;
      // A restart may have succeeded at the very moment of the request to stop.
      await running?.stop({ hurry: hurry.aborted });
      hurry.removeEventListener("abort", kill);
    },
  };
}
