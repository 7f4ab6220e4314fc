// The worker process: runs reconcilers over the database. It owns no state and may run many times.

import { hostname } from "node:os";
import type { RunningProcess } from "@holdfast/kit/lifecycle";
import { UsageError, type Values } from "@holdfast/kit/settings";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { version } from "@holdfast/service/version";
import { openPool, type Sql } from "../database/connect.ts";
import { endTerminals, removeOldTerminals } from "../reconcilers/end-terminals.ts";
import { overdueRenewals, removeOldIdentities } from "../reconcilers/node-identities.ts";
import { removeExpired } from "../reconcilers/remove-expired.ts";
import { removeOldTasks } from "../reconcilers/remove-old-tasks.ts";
import { sweepTasks } from "../reconcilers/sweep-tasks.ts";
import { openSignals } from "../signals/signals.ts";
import { runPeriodically } from "./periodic.ts";
import { workerSettings } from "./settings.ts";

const HEARTBEAT_SECONDS = 5;
const RETENTION_SECONDS = 600;
const RENEWALS_SECONDS = 60;
const TERMINALS_SECONDS = 15;

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
  const signals = await openSignals(system, log, { deaf: true });
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
    runPeriodically({
      name: "remove-old-identities",
      seconds: RETENTION_SECONDS,
      log,
      work: async () => {
        const removed = await removeOldIdentities(system);
        if (Object.values(removed).some((count) => count > 0)) log.info({ removed }, "removed old identities");
      },
    }),
    runPeriodically({
      name: "overdue-renewals",
      seconds: RENEWALS_SECONDS,
      log,
      work: overdueRenewals(system, log),
    }),
    runPeriodically({
      name: "sweep-tasks",
      seconds: settings.taskSweepIntervalSeconds,
      log,
      work: async () => {
        const swept = await sweepTasks(system, signals);
        if (Object.values(swept).some((count) => count > 0)) log.info({ swept }, "swept tasks");
      },
    }),
    runPeriodically({
      name: "end-terminals",
      seconds: TERMINALS_SECONDS,
      log,
      work: async () => {
        const ended = await endTerminals(system, signals, log);
        if (ended > 0) log.info({ ended }, "ended terminals that nobody spoke for");
      },
    }),
    runPeriodically({
      name: "remove-old-terminals",
      seconds: RETENTION_SECONDS,
      log,
      work: async () => {
        const removed = await removeOldTerminals(system, { days: settings.taskRetentionDays });
        if (Object.values(removed).some((count) => count > 0)) log.info({ removed }, "removed old terminals");
      },
    }),
    runPeriodically({
      name: "remove-old-tasks",
      seconds: RETENTION_SECONDS,
      log,
      work: async () => {
        const removed = await removeOldTasks(system, { days: settings.taskRetentionDays });
        if (removed > 0) log.info({ removed }, "removed old tasks");
      },
    }),
  ];
  log.info({ version }, "worker runs");

  return {
    ports: {},
    async stop() {
      await Promise.all(periodic.map((one) => one.stop()));
      await signals.stop();
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
