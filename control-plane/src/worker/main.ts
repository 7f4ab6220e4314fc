// The worker process: runs reconcilers over the database. It owns no state and may run many times.

import { hostname } from "node:os";
import { UsageError, type Values } from "@holdfast/kit/settings";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { RunningProcess } from "@holdfast/service/lifecycle";
import type { Log } from "@holdfast/service/log";
import { version } from "@holdfast/service/version";
import { openPool, type Sql } from "../database/connect.ts";
import { removeExpired } from "../reconcilers/remove-expired.ts";
import { runPeriodically } from "./periodic.ts";
import { workerSettings } from "./settings.ts";

const HEARTBEAT_SECONDS = 5;

export async function startWorker(settings: Values<typeof workerSettings>, log: Log): Promise<RunningProcess> {
  const url = settings.databaseUrl;
  if (!url) {
    throw new UsageError(
      `${workerSettings.databaseUrl.env} is not set. \`holdfast up\` sets it by itself; a process run alone needs it.`,
    );
  }
  const system = openPool({ url, role: "holdfast_system", application: "holdfast-worker", max: 4 });
  const id = uuidv7();
  await beat(system, id);
  const periodic = [
    runPeriodically({ name: "heartbeat", seconds: HEARTBEAT_SECONDS, log, work: () => beat(system, id) }),
    runPeriodically({
      name: "remove-expired",
      seconds: settings.sweepIntervalSeconds,
      log,
      work: async () => {
        const removed = await removeExpired(system);
        if (Object.values(removed).some((count) => count > 0)) log.info({ removed }, "removed expired rows");
      },
    }),
  ];
  log.info({ version }, "worker runs");

  return {
    ports: {},
    async stop() {
      await Promise.all(periodic.map((one) => one.stop()));
      await system`DELETE FROM processes WHERE id = ${id}`.catch(() => {});
      await system.end({ timeout: 5 });
    },
  };
}

async function beat(system: Sql, id: string): Promise<void> {
  await system`
    INSERT INTO processes (id, kind, version, hostname) VALUES (${id}, 'worker', ${version}, ${hostname()})
    ON CONFLICT (id) DO UPDATE SET last_seen_at = now()`;
}
