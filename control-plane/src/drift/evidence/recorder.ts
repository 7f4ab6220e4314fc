// Evidence on its way into the database: what arrives within a moment shares a statement. Nobody waits for it, and what is
// lost is observed again.

import type { Log } from "@holdfast/service/log";
import type { Sql } from "../../database/connect.ts";
import { createBatches } from "../../mechanisms/batches.ts";
import type { Signals } from "../../mechanisms/signals.ts";
import { type AllFindings, type NewObservation, recordObservations } from "./write.ts";

export type Recorder = {
  /** Of one node. `allFindings`: it has no others. */
  observe(nodeId: string, observations: readonly NewObservation[], allFindings?: AllFindings): void;
};

const GATHER_MS = 20;
const MOST_NODES = 200;

type Given = { nodeId: string; observations: readonly NewObservation[]; complete: readonly AllFindings[] };

export function createRecorder(options: { system: Sql; signals: Signals; log: Log }): Recorder {
  const { system, signals, log } = options;
  const batches = createBatches<Given, undefined>({
    most: MOST_NODES,
    atOnce: 1,
    restMs: GATHER_MS,
    keyOf: ({ nodeId }) => nodeId,
    concernsAll: () => true,
    run: async (batch) => {
      const all = batch.flatMap(({ observations }) => observations);
      const complete = batch.flatMap((one) => one.complete);
      const changed = await recordObservations(system, all, complete);
      if (changed.length > 0) signals.publish("evidence", changed);
      return batch.map(() => undefined);
    },
  });
  return {
    observe(nodeId, observations, allFindings) {
      const complete = allFindings ? [allFindings] : [];
      if (observations.length + complete.length === 0) return;
      batches.add({ nodeId, observations, complete }).catch((error: unknown) => {
        log.warn({ err: error, node_id: nodeId }, "could not store evidence; it is observed again");
      });
    },
  };
}
