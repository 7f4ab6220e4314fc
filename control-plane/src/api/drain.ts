// Lets a load balancer in front go elsewhere before anything is refused. First it sees that this process is not ready, and
// everything is served as before; then no new connection is taken, and what is open is served to its end.

import { setTimeout as wait } from "node:timers/promises";
import type { HttpServer } from "@holdfast/service/http";
import type { Log } from "@holdfast/service/log";

type Drained = Pick<HttpServer, "startDraining" | "stopAccepting">;

export async function drain(
  seconds: number,
  { listeners, live, log }: { listeners: readonly Drained[]; live: { stop(): void }; log: Log },
): Promise<void> {
  if (seconds === 0) return;
  log.info({ seconds }, "drains before it stops");
  for (const one of listeners) one.startDraining();
  await wait(seconds * 1000);
  live.stop();
  await Promise.all(listeners.map((one) => one.stopAccepting(seconds * 1000)));
}
