// Of several workers, one runs each reconciler. They are idempotent and could all run; but every one costs the
// database, and some tell what they find. A worker that stays away loses its turn to whoever comes next.

import type { Sql } from "../database/connect.ts";

export type Turns = {
  /** Whether this worker runs that reconciler now. */
  take(name: string, everySeconds: number): Promise<boolean>;
  /** Leaves the next turns to whoever comes first. */
  leave(): Promise<void>;
};

/** Of the interval: timers are not exact, and whoever is a little early must not miss its turn. */
const OWN_FROM = 0.5;
/** After so many intervals the others wait no longer. */
const OTHERS_FROM = 1.5;

export function openTurns(system: Sql, workerId: string): Turns {
  return {
    async take(name, everySeconds) {
      const rows = await system`
        INSERT INTO reconciler_turns AS t (name, taken_by) VALUES (${name}, ${workerId})
        ON CONFLICT (name) DO UPDATE SET taken_by = excluded.taken_by, taken_at = now(), turns = t.turns + 1
        WHERE t.taken_at <= now() - interval '1 second' * ${everySeconds} *
          CASE WHEN t.taken_by = excluded.taken_by OR t.taken_by IS NULL THEN ${OWN_FROM}::float8
               ELSE ${OTHERS_FROM}::float8 END
        RETURNING name`;
      return rows.length === 1;
    },
    async leave() {
      await system`UPDATE reconciler_turns SET taken_by = NULL WHERE taken_by = ${workerId}`;
    },
  };
}
