// holdfast api, gateway, worker: one process of its kind, configured by the environment alone.

import { warningsAboutUnsupported } from "@holdfast/kit/known-names";
import { type RunningProcess, runProcess } from "@holdfast/kit/lifecycle";
import {
  describeSettings,
  type Environment,
  readSettings,
  type Settings,
  secretValues,
  type Values,
} from "@holdfast/kit/settings";
import { createLog, type Log } from "@holdfast/service/log";
import type { OwnProcess } from "@holdfast/service/log-store/own-process";
import type { logStoreSettings } from "@holdfast/service/settings";
import { Command, Option } from "commander";
import { openOwnLogStore } from "./own-log-store.ts";

export function apiCommand(): Command {
  return new Command("api")
    .addOption(alwaysJson())
    .description("run one api process: public API and web app; uses the database at HOLDFAST_DATABASE_URL")
    .action(async () => {
      const { apiSettings } = await import("@holdfast/control-plane/api/settings");
      const { startApi } = await import("@holdfast/control-plane/api/main");
      await runServer("api", apiSettings, startApi);
    });
}

export function gatewayCommand(): Command {
  return new Command("gateway")
    .addOption(alwaysJson())
    .description("run one gateway process: terminal streams")
    .action(async () => {
      const { gatewaySettings } = await import("@holdfast/gateway/settings");
      const { startGateway } = await import("@holdfast/gateway/main");
      await runServer("gateway", gatewaySettings, startGateway);
    });
}

export function workerCommand(): Command {
  return new Command("worker")
    .addOption(alwaysJson())
    .description("run one worker process: background jobs; uses the database at HOLDFAST_DATABASE_URL")
    .action(async () => {
      const { workerSettings } = await import("@holdfast/control-plane/worker/settings");
      const { startWorker } = await import("@holdfast/control-plane/worker/main");
      await runServer("worker", workerSettings, startWorker);
    });
}

/** For scripts that pass it to every command. */
function alwaysJson(): Option {
  return new Option("--json", "log lines are always JSON").hideHelp();
}

/** A process of the server, which keeps its log lines and knows what it runs with. */
async function runServer<S extends Settings & typeof logStoreSettings & { logLevel: Settings[string] }>(
  name: string,
  declared: S,
  start: (settings: Values<S>, log: Log, own: OwnProcess) => Promise<RunningProcess>,
): Promise<void> {
  const settings = readSettings(declared, process.env);
  const { logLevel: level, ...limits } = settings as Values<typeof logStoreSettings> & { logLevel: string };
  const warnings = warningsAboutUnsupported(process.env);
  forgetSecrets(process.env);
  const kept = await openOwnLogStore(name, limits);
  const secrets = secretValues(declared, settings);
  const log = createLog({ process: name, level, store: kept.store, secrets });
  for (const warning of [...warnings, ...(kept.problem === undefined ? [] : [kept.problem])]) log.warn(warning);
  const own = { logs: kept.store, settings: describeSettings(declared, settings), secrets };
  await runProcess(log, () => start(settings, log, own));
}

export async function runConfigured<S extends { logLevel: string }>(
  name: string,
  settings: S,
  start: (settings: S, log: Log) => Promise<RunningProcess>,
): Promise<void> {
  const warnings = warningsAboutUnsupported(process.env);
  forgetSecrets(process.env);
  const log = createLog({ process: name, level: settings.logLevel });
  for (const warning of warnings) log.warn(warning);
  await runProcess(log, () => start(settings, log));
}

/** Once read, secrets need not stand in the environment, where a child or a crash report would find them. */
export function forgetSecrets(env: Environment): void {
  for (const name of Object.keys(env)) if (/KEK_BASE64|DATABASE_URL|REDIS_URL|TOKEN/.test(name)) delete env[name];
}
