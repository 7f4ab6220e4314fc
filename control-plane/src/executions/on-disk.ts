// Waits until everything that was committed before is on the disk. Statements that lock an agent commit without waiting for the disk: the
// next one of that agent would wait for it, too, which cost a fifth of the steps with 32 in flight (bench/README.md). Nobody is
// answered before this has resolved. A transaction that writes nothing but a message, and waits for the disk, has all earlier ones
// written with it.

import { isUnavailable, type Sql } from "../database/connect.ts";
import { createBatches } from "../mechanisms/batches.ts";

export type OnDisk = {
  /** Resolves when everything that was committed before the call is on the disk. */
  wait(): Promise<void>;
  settled(): Promise<void>;
};

export function createOnDisk(durable: Sql): OnDisk {
  let next = 0;
  const together = createBatches<number, void>({
    ...{ most: 10_000, atOnce: 1, keyOf: String, concernsAll: isUnavailable },
    run: async (items) => {
      await durable`SELECT pg_logical_emit_message(true, 'holdfast', '')`;
      return items.map(() => undefined);
    },
  });
  return { wait: () => together.add(next++), settled: together.settled };
}
