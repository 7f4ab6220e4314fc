// holdfast api, gateway, worker: one process of its kind, configured by the environment alone.

import { warningsAboutUnsupported } from "@holdfast/kit/known-names";
import { type RunningProcess, runProcess } from "@holdfast/kit/lifecycle";
import { type Environment, readSettings } from "@holdfast/kit/settings";
import { createLog, type Log } from "@holdfast/service/log";
import { Command, Option } from "commander";

export function apiCommand(): Command {
  return new Command("api")
    .addOption(alwaysJson())
    .description("run one api process: public API and web app; uses the database at HOLDFAST_DATABASE_URL")
    .action(async () => {
      const { apiSettings } = await import("@holdfast/control-plane/api/settings");
      const { startApi } = await import("@holdfast/control-plane/api/main");
      await runConfigured("api", readSettings(apiSettings, process.env), startApi);
    });
}

export function gatewayCommand(): Command {
  return new Command("gateway")
    .addOption(alwaysJson())
    .description("run one gateway process: terminal streams")
    .action(async () => {
      const { gatewaySettings } = await import("@holdfast/gateway/settings");
      const { startGateway } = await import("@holdfast/gateway/main");
      await runConfigured("gateway", readSettings(gatewaySettings, process.env), startGateway);
    });
}

export function workerCommand(): Command {
  return new Command("worker")
    .addOption(alwaysJson())
    .description("run one worker process: background jobs; uses the database at HOLDFAST_DATABASE_URL")
    .action(async () => {
      const { workerSettings } = await import("@holdfast/control-plane/worker/settings");
      const { startWorker } = await import("@holdfast/control-plane/worker/main");
      await runConfigured("worker", readSettings(workerSettings, process.env), startWorker);
    });
}

/** For scripts that pass it to every command. */
function alwaysJson(): Option {
  return new Option("--json", "log lines are always JSON").hideHelp();
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
