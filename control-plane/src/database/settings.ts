// How a control-plane process finds its database: by the owner's URL, or by one URL for each of the two runtime roles.

import { type Environment, kinds, optional } from "@holdfast/kit/settings";

/** The addresses with which tenant requests, and everything else, use the database. */
export type Logins = { appUrl: string; systemUrl: string };

const databaseUrl = optional(kinds.postgresUrl, {
  env: "HOLDFAST_DATABASE_URL",
  aliases: ["DATABASE_URL"],
  secret: true,
  help: "URL of a PostgreSQL 15 or newer, with its owner's login and password. Default: `holdfast up` runs an embedded PostgreSQL 18.",
});

export const loginSettings = {
  appDatabaseUrl: optional(kinds.postgresUrl, {
    env: "HOLDFAST_APP_DATABASE_URL",
    secret: true,
    help: "URL of the database with a login that is a member of holdfast_app only, for tenants' requests. Default: derived from the owner's.",
  }),
  systemDatabaseUrl: optional(kinds.postgresUrl, {
    env: "HOLDFAST_SYSTEM_DATABASE_URL",
    secret: true,
    help: "URL of the database with a login that is a member of holdfast_system, for everything else. Default: derived from the owner's.",
  }),
};

export const databaseSettings = { databaseUrl, ...loginSettings };

/** The worker serves no tenant's request. */
export const systemDatabaseSettings = { databaseUrl, systemDatabaseUrl: loginSettings.systemDatabaseUrl };

/** The settings of a process that must not have the owner's login. */
export function loginEnvironment({ appUrl, systemUrl }: Logins): Environment {
  return { [loginSettings.appDatabaseUrl.env]: appUrl, [loginSettings.systemDatabaseUrl.env]: systemUrl };
}
