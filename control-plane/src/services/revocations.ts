// Tells gateways of nodes whose certificates count no more: at once by signal, and by a look every
// second in case one was lost. Each change of a node is told once.

import type { ServiceNews } from "@holdfast/contracts/service-endpoints";
import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import type { Signals } from "../signals/signals.ts";
import { runPeriodically } from "../worker/periodic.ts";

type Changed = { id: string; changed_at: Date };

const LOOK_SECONDS = 1;
/** A transaction stamps its change before it commits, and may take up to 30 s to do so. */
const LOOK_BACK = "40 seconds";
const REMEMBERED_MS = 120_000;

export function watchRevocations(options: {
  system: Sql;
  signals: Signals;
  tell(lines: readonly ServiceNews[]): void;
  log: Log;
}): { stop(): Promise<void> } {
  const { system, signals, log } = options;
  const told = new Map<string, number>();

  const tell = (changed: readonly Changed[]) => {
    const fresh = changed.filter(({ id, changed_at }) => told.get(id) !== changed_at.getTime());
    for (const { id, changed_at } of fresh) told.set(id, changed_at.getTime());
    options.tell(fresh.map(({ id }) => ({ type: "node_revoked", node_id: id })));
    for (const [id, at] of told) if (at < Date.now() - REMEMBERED_MS) told.delete(id);
  };

  const unsubscribe = signals.subscribe("node_standing", (ids) => {
    selectRevoked(system, ids).then(tell, (error: unknown) =>
      log.debug({ err: error }, "revocations wait for the next look"),
    );
  });
  const periodic = runPeriodically({
    name: "revocations",
    seconds: LOOK_SECONDS,
    log,
    work: async () => tell(await selectRevoked(system, null)),
  });
  return {
    async stop() {
      unsubscribe();
      await periodic.stop();
    },
  };
}

/** Revoked as a node, or enrolled anew, which ends the certificates before. */
function selectRevoked(system: Sql, ids: readonly string[] | null): Promise<Changed[]> {
  return system<Changed[]>`
    SELECT n.id, n.status_changed_at AS changed_at FROM nodes n
    WHERE ${ids === null ? system`n.status_changed_at > now() - ${LOOK_BACK}::interval` : system`n.id = ANY(${ids as string[]}::uuid[])`}
      AND (n.revoked_at IS NOT NULL OR EXISTS (
        SELECT FROM node_certificates c WHERE c.node_id = n.id AND c.revoked_at > n.status_changed_at - interval '30 seconds'))`;
}
