// Registers this process in the installation: it records that it runs, with reports of its background jobs, and checks
// whether other processes of its kind run. A single api sends no notifications: each costs a statement and wakes every
// process that listens. A new replica is noticed within a second, and polls that often itself.

import { hostname } from "node:os";
import { uuidv7 } from "@holdfast/kit/uuid";
import { version } from "@holdfast/service/version";
import type { Sql } from "../database/connect.ts";
import type { JobReports } from "../mechanisms/background/report.ts";
import { splitReports, storeShared } from "../mechanisms/background/stored.ts";

export type Presence = {
  id: string;
  /** No other process of this kind was running at the last check. */
  alone(): boolean;
  /** Writes at most every five seconds, however often it is called. */
  look(reports: JobReports): Promise<void>;
  /** Stores the last reports and removes this process from the list. */
  leave(reports: JobReports): Promise<void>;
};

/** Processes write every five seconds, so several writes may be lost before a process is considered gone. */
export const PROCESS_SILENT_AFTER = "20 seconds";

export async function announceProcess(system: Sql, kind: "api" | "worker"): Promise<Presence> {
  const id = uuidv7();
  let alone = false;

  const look = async (reports: JobReports) => {
    const { own, shared } = splitReports(reports);
    try {
      const [row] = await system<{ others: number }[]>`
        WITH seen AS (
          INSERT INTO processes (id, kind, version, hostname, jobs)
          VALUES (${id}, ${kind}, ${version}, ${hostname()}, ${JSON.stringify(own)}::text::jsonb)
          ON CONFLICT (id) DO UPDATE SET last_seen_at = now(), jobs = excluded.jobs
          WHERE processes.last_seen_at <= now() - interval '4.5 seconds'
          RETURNING id
        ), stored AS (${storeShared(system, { processId: id, shared, when: system`EXISTS (SELECT FROM seen)` })})
        SELECT count(*)::integer AS others FROM processes
        WHERE kind = ${kind} AND id <> ${id} AND last_seen_at > now() - ${PROCESS_SILENT_AFTER}::interval`;
      alone = row?.others === 0;
    } catch (error) {
      alone = false;
      throw error;
    }
  };

  await look({});
  return {
    id,
    alone: () => alone,
    look,
    async leave(reports) {
      const { shared } = splitReports(reports);
      await system`
        WITH stored AS (${storeShared(system, { processId: id, shared, when: system`true` })})
        DELETE FROM processes WHERE id = ${id}`;
    },
  };
}
