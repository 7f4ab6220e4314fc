// The worker process: runs reconcilers over the database. It owns no state and may run many times: of several, one
// has each turn.

import { hostname } from "node:os";
import type { RunningProcess } from "@holdfast/kit/lifecycle";
import { UsageError, type Values } from "@holdfast/kit/settings";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Log } from "@holdfast/service/log";
import { version } from "@holdfast/service/version";
import { openPool, type Sql } from "../database/connect.ts";
import { deriveLogins } from "../database/logins.ts";
import { endTerminals, removeOldTerminals } from "../reconcilers/end-terminals.ts";
import { expireGrants } from "../reconcilers/expire-grants.ts";
import { overdueRenewals, removeOldIdentities } from "../reconcilers/node-identities.ts";
import { auditOffline } from "../reconcilers/offline-nodes.ts";
import { removeExpired } from "../reconcilers/remove-expired.ts";
import { removeOldTasks } from "../reconcilers/remove-old-tasks.ts";
import { sweepTasks } from "../reconcilers/sweep-tasks.ts";
import { openSignals } from "../signals/signals.ts";
import { runPeriodically } from "./periodic.ts";
import { workerSettings } from "./settings.ts";
import { openTurns } from "./turns.ts";

const HEARTBEAT_SECONDS = 5;
const RETENTION_SECONDS = 600;
const RENEWALS_SECONDS = 60;
const TERMINALS_SECONDS = 15;
const GRANTS_SECONDS = 60;
const OFFLINE_SECONDS = 5;

/** How much a reconciler did, at once or by kind. */
type Done = number | Readonly<Record<string, number>>;

export async function startWorker(settings: Values<typeof workerSettings>, log: Log): Promise<RunningProcess> {
  const url = settings.systemDatabaseUrl ?? (settings.databaseUrl && deriveLogins(settings.databaseUrl).systemUrl);
  if (!url) {
    throw new UsageError(
      `${workerSettings.systemDatabaseUrl.env} is not set. \`holdfast up\` sets it by itself; a process run alone needs it, ` +
        `or ${workerSettings.databaseUrl.env} with the owner's login.`,
    );
  }
  const system = openPool({ url, role: "holdfast_system", application: "holdfast-worker", max: 4 });
  const id = uuidv7();
  await beat(system, id);
  const signals = await openSignals(system, log, { deaf: true });
  const turns = openTurns(system, id);
  /** By one of all workers. `work` answers with what it did, if that is worth a line. */
  const reconcile = (name: string, seconds: number, work: () => Promise<Done>) =>
    runPeriodically({
      name,
      seconds,
      log,
      work: async () => {
        if (!(await turns.take(name, seconds))) return;
        const done = await work();
        const counts = typeof done === "number" ? [done] : Object.values(done);
        if (counts.some((count) => count > 0)) log.info({ reconciler: name, done }, "reconciled");
      },
    });
  const { sweepIntervalSeconds, taskSweepIntervalSeconds, taskRetentionDays: days } = settings;
  const { nodeHeartbeatStaleSeconds: staleAfterSeconds } = settings;
  const periodic = [
    runPeriodically({ name: "heartbeat", seconds: HEARTBEAT_SECONDS, log, work: () => beat(system, id) }),
    reconcile("remove-expired", sweepIntervalSeconds, () => removeExpired(system)),
    reconcile("remove-old-identities", RETENTION_SECONDS, () => removeOldIdentities(system)),
    reconcile("overdue-renewals", RENEWALS_SECONDS, overdueRenewals(system, log)),
    reconcile("audit-offline", OFFLINE_SECONDS, () => auditOffline(system, log, { staleAfterSeconds })),
    reconcile("sweep-tasks", taskSweepIntervalSeconds, () => sweepTasks(system, signals)),
    reconcile("expire-grants", GRANTS_SECONDS, () => expireGrants(system, log)),
    reconcile("end-terminals", TERMINALS_SECONDS, () => endTerminals(system, signals, log)),
    reconcile("remove-old-terminals", RETENTION_SECONDS, () => removeOldTerminals(system, { days })),
    reconcile("remove-old-tasks", RETENTION_SECONDS, () => removeOldTasks(system, { days })),
  ];
  log.info({ version }, "worker runs");

  return {
    ports: {},
    async stop() {
      await Promise.all(periodic.map((one) => one.stop()));
      await signals.stop();
      await turns.leave().catch(() => {});
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
