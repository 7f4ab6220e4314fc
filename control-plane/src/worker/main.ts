// The worker process: runs the background jobs of the modules that need no listener. It owns no state and may run many
// times: of several workers, one has each turn.

import type { RunningProcess } from "@holdfast/kit/lifecycle";
import { UsageError, type Values } from "@holdfast/kit/settings";
import type { Log } from "@holdfast/service/log";
import { type OwnProcess, unknownProcess } from "@holdfast/service/log-store/own-process";
import { version } from "@holdfast/service/version";
import { openPool } from "../database/connect.ts";
import { deriveLogins } from "../database/logins.ts";
import { type Background, startBackground } from "../mechanisms/background/driver.ts";
import { openTurns } from "../mechanisms/background/turns.ts";
import { openSignals } from "../mechanisms/signals.ts";
import * as modules from "../modules.ts";
import { announceProcess } from "../platform/presence.ts";
import { openPolicies } from "../policy/live.ts";
import type { WorkerContext } from "./context.ts";
import { workerSettings } from "./settings.ts";

const jobs = Object.values(modules).flatMap((module) => [...module.workerJobs]);

export async function startWorker(
  given: Values<typeof workerSettings>,
  log: Log,
  own: OwnProcess = unknownProcess,
): Promise<RunningProcess> {
  const url = given.systemDatabaseUrl ?? (given.databaseUrl && deriveLogins(given.databaseUrl).systemUrl);
  if (!url) {
    throw new UsageError(
      `${workerSettings.systemDatabaseUrl.env} is not set. \`holdfast up\` sets it by itself; a process run alone needs it, ` +
        `or ${workerSettings.databaseUrl.env} with the owner's login.`,
    );
  }
  const system = openPool({ url, role: "holdfast_system", application: "holdfast-worker", max: 4 });
  const { settings, ...policies } = await openPolicies(system, given, log);
  const presence = await announceProcess(system, "worker");
  const signals = await openSignals(system, log, { deaf: jobs.every((job) => job.wakeOn === undefined) });
  const turns = openTurns(system, presence.id);
  let background: Background | undefined;
  const reports = () => background?.reports() ?? {};
  background = startBackground<WorkerContext & { settings: typeof settings }>({
    jobs,
    context: { system, signals, log, presence, policies, reports, own, settings },
    signals,
    turns,
    log,
  });
  log.info({ version }, "worker runs");

  return {
    ports: {},
    async stop() {
      await background?.stop();
      await signals.stop();
      await presence.leave(reports()).catch(() => {});
      await turns.leave().catch(() => {});
      await system.end({ timeout: 5 });
    },
  };
}
