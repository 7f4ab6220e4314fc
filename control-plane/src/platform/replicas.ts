// Whether this api process is the only one. Alone, nobody needs to be notified of anything: a
// notification costs a statement, and wakes every process that listens, this one included. A replica
// that has just come is seen within a second, and looks by itself that often.

import { hostname } from "node:os";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { version } from "@holdfast/service/version";
import type { Sql } from "../database/connect.ts";
import { runPeriodically } from "../worker/periodic.ts";

export type Replicas = { alone(): boolean; stop(): Promise<void> };

const LOOK_SECONDS = 1;

export async function announceReplica(system: Sql, log: Log): Promise<Replicas> {
  const id = uuidv7();
  let alone = false;
  const look = async () => {
    try {
      const [row] = await system<{ others: number }[]>`
        WITH seen AS (
          INSERT INTO processes (id, kind, version, hostname) VALUES (${id}, 'api', ${version}, ${hostname()})
          ON CONFLICT (id) DO UPDATE SET last_seen_at = now()
          WHERE processes.last_seen_at < now() - interval '5 seconds'
        )
        SELECT count(*)::integer AS others FROM processes
        WHERE kind = 'api' AND id <> ${id} AND last_seen_at > now() - interval '20 seconds'`;
      alone = row?.others === 0;
    } catch (error) {
      alone = false;
      throw error;
    }
  };
  await look();
  const looking = runPeriodically({ name: "replicas", seconds: LOOK_SECONDS, log, work: look });
  return {
    alone: () => alone,
    async stop() {
      await looking.stop();
      await system`DELETE FROM processes WHERE id = ${id}`.catch(() => undefined);
    },
  };
}
