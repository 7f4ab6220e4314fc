// Lets a load balancer switch to other processes before any connection is refused. First this process reports that it is
// not ready and still serves everything; then it accepts no new connections and completes the open requests.

import { setTimeout as wait } from "node:timers/promises";
import type { HttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";

type Drained = Pick<HttpServer, "startDraining" | "stopAccepting">;

export async function drain(
  seconds: number,
  { listeners, live, log }: { listeners: readonly Drained[]; live: { stop(): void }; log: Log },
): Promise<void> {
  if (seconds === 0) return;
  log.info({ seconds }, "draining before the stop");
  for (const one of listeners) one.startDraining();
  await wait(seconds * 1000);
  live.stop();
  await Promise.all(listeners.map((one) => one.stopAccepting(seconds * 1000)));
}
