// Registers this process in the installation: it records that it runs, with reports of its background jobs, and checks
// whether other processes of its kind run. A single api sends no notifications: each costs a statement and wakes every
// process that listens. A new replica is noticed within a second, and polls that often itself. The times in which no process
// of a kind ran, or none reached the database, are kept: what nodes did then says nothing about them.

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

/** `kekIds`: of an api, the one that it seals with first. */
export async function announceProcess(
  system: Sql,
  kind: "api" | "worker",
  { kekIds = [] }: { kekIds?: readonly string[] } = {},
): Promise<Presence> {
  const id = uuidv7();
  let alone = false;

  const look = async (reports: JobReports) => {
    const { own, shared } = splitReports(reports);
    try {
      const [row] = await system<{ others: number }[]>`
        WITH last AS (
          SELECT max(last_seen_at) AS at FROM processes WHERE kind = ${kind}
        ), over AS (
          UPDATE control_plane_outages SET ended_at = now() WHERE kind = ${kind} AND ended_at IS NULL RETURNING kind
        ), missed AS (
          INSERT INTO control_plane_outages (kind, began_at, ended_at)
          SELECT ${kind}, at, now() FROM last
          WHERE at <= now() - ${PROCESS_SILENT_AFTER}::interval AND NOT EXISTS (SELECT FROM over)
          ON CONFLICT DO NOTHING
        ), seen AS (
          INSERT INTO processes (id, kind, version, hostname, kek_ids, jobs)
          VALUES (${id}, ${kind}, ${version}, ${hostname()}, ${[...kekIds]}, ${JSON.stringify(own)}::text::jsonb)
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
        WITH stored AS (${storeShared(system, { processId: id, shared, when: system`true` })}), last AS (
          INSERT INTO control_plane_outages (kind, began_at)
          SELECT ${kind}, now() WHERE NOT EXISTS (
            SELECT FROM processes
            WHERE kind = ${kind} AND id <> ${id} AND last_seen_at > now() - ${PROCESS_SILENT_AFTER}::interval)
          ON CONFLICT DO NOTHING
        )
        DELETE FROM processes WHERE id = ${id}`;
    },
  };
}
