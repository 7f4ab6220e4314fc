// Settings of `holdfast up` itself, and the reading of all settings that its processes will read:
// a wrong value should stop the start before anything runs, not appear later in some log file.

import { apiSettings } from "@holdfast/control-plane/api/settings";
import { workerSettings } from "@holdfast/control-plane/worker/settings";
import { gatewaySettings } from "@holdfast/gateway/settings";
import { warningsAboutUnsupported } from "@holdfast/kit/known-names";
import {
  type Environment,
  kinds,
  oneOf,
  optional,
  readSettings,
  type Setting,
  type Settings,
  setting,
  unknownSettings,
  type Values,
} from "@holdfast/kit/settings";
import { agentSettings, joinSettings } from "@holdfast/node-agent/settings";
import { checkExposure } from "@holdfast/service/settings";
import { clientSettings } from "../client/settings.ts";
import { ingressSettings } from "../ingress/settings.ts";
import { dataDirectorySetting } from "./data-directory-setting.ts";

export const upSettings = {
  dataDir: dataDirectorySetting,
  postgresUser: optional(kinds.text, {
    env: "HOLDFAST_POSTGRES_USER",
    help: "OS user that runs the embedded PostgreSQL when `holdfast up` runs as root. Default: holdfast if it exists, else nobody.",
  }),
  runsAgent: setting(oneOf("yes", "no"), {
    env: "HOLDFAST_UP_AGENT",
    default: "yes",
    help: "Whether `holdfast up` enrolls this machine as a node of its own installation and runs its agent.",
  }),
};

export const processSettings = {
  api: apiSettings,
  gateway: gatewaySettings,
  worker: workerSettings,
  agent: agentSettings,
};
export type ProcessName = keyof typeof processSettings;

export type AllSettings = Values<typeof upSettings> & {
  api: Values<typeof apiSettings>;
  gateway: Values<typeof gatewaySettings>;
  agent: Values<typeof agentSettings>;
};

const everySetting: Setting[] = [
  upSettings,
  clientSettings,
  joinSettings,
  ingressSettings,
  ...Object.values<Settings>(processSettings),
].flatMap((declared) => Object.values(declared as Settings));

/** Throws a UsageError that names what is wrong. */
export function readAllSettings(env: Environment): AllSettings {
  const all = {
    ...readSettings(upSettings, env),
    api: readSettings(apiSettings, env),
    gateway: readSettings(gatewaySettings, env),
    agent: readSettings(agentSettings, env),
  };
  readSettings(workerSettings, env);
  checkExposure(all.api, apiSettings.bind.env);
  checkExposure(all.gateway, gatewaySettings.bind.env);
  return all;
}

/** About names that are set and have no effect. Most unknown ones are typing mistakes. */
export function warningsAboutNames(env: Environment): string[] {
  const unknown = unknownSettings(everySetting, env).map(
    ({ name, nearest }) =>
      `${name} is not a setting of Holdfast${nearest ? `; did you mean ${nearest}?` : " and is ignored."}`,
  );
  return [...unknown, ...warningsAboutUnsupported(env)];
}

/** The environment of a process: everything except the secrets of other processes. */
export function environmentFor(name: ProcessName, env: Environment, values: Environment): Environment {
  const own = new Set(Object.values<Setting>(processSettings[name]).map((one) => one.env));
  const result = { ...env };
  for (const { env: canonical, aliases, secret } of everySetting) {
    const foreignSecret = secret && !own.has(canonical);
    if (foreignSecret || canonical in values) {
      for (const spelling of [canonical, ...aliases]) delete result[spelling];
    }
    if (own.has(canonical) && values[canonical] !== undefined) result[canonical] = values[canonical];
  }
  return result;
}
