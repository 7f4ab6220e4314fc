// Of several workers, one runs each job of `one worker`. Jobs are idempotent and could all run; but every turn costs the
// database, and some report what they find. A worker that stops loses its turn to the next one.

import type { Sql } from "../../database/connect.ts";

export type Turns = {
  /** Whether this worker runs that job now. `early`: woken before the job is due. */
  take(name: string, everySeconds: number, options?: { early?: boolean }): Promise<boolean>;
  /** Leaves the next turns to the other workers. */
  leave(): Promise<void>;
};

/** A fraction of the interval: timers are not exact, and a worker that is a little early must not miss its turn. */
const OWN_FROM = 0.5;
/** After this many intervals, another worker takes the turn. */
const OTHERS_FROM = 1.5;

export function openTurns(system: Sql, workerId: string): Turns {
  return {
    async take(name, everySeconds, { early = false } = {}) {
      // A signal wakes all workers: the one that had the last turn runs, the others find that it has.
      const ownFrom = early ? 0 : OWN_FROM;
      const rows = await system`
        INSERT INTO background_jobs AS t (name, taken_by) VALUES (${name}, ${workerId})
        ON CONFLICT (name) DO UPDATE SET taken_by = excluded.taken_by, taken_at = now(), turns = t.turns + 1
        WHERE t.taken_at <= now() - interval '1 second' * ${everySeconds} *
          CASE WHEN t.taken_by = excluded.taken_by OR t.taken_by IS NULL THEN ${ownFrom}::float8
               ELSE ${OTHERS_FROM}::float8 END
        RETURNING name`;
      return rows.length === 1;
    },
    async leave() {
      await system`UPDATE background_jobs SET taken_by = NULL WHERE taken_by = ${workerId}`;
    },
  };
}
