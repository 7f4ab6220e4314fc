// One PostgreSQL for all labs of a run, with a database for each; reached by its socket, from every host alike.
// A scenario that harms PostgreSQL itself gets one of its own.

import { mkdirSync } from "node:fs";
import { openOwner } from "@holdfast/control-plane/database/connect";
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from "@holdfast/control-plane/database/embedded/start";
import { setUpDatabase } from "@holdfast/control-plane/database/logins";
import type { Logins } from "@holdfast/control-plane/database/settings";

export type SharedDatabase = {
  /** A new, migrated database; returns the logins that an api runs with. */
  create(name: string): Promise<Logins>;
  /** Runs a statement in it that no process of an installation could run. */
  change(name: string, statement: string): Promise<void>;
  stop(): Promise<void>;
};

/** These databases live for a minute, in memory. */
const hasty = { fsync: "off", full_page_writes: "off", max_connections: "300" };

export async function openSharedDatabase(directory: string): Promise<SharedDatabase> {
  const { server, logins } = await startMigrated(directory, { parameters: hasty });
  const admin = openOwner(server.superuserUrl);
  return {
    async create(name) {
      await admin.unsafe(`CREATE DATABASE ${name} TEMPLATE holdfast OWNER holdfast_owner`);
      const inDatabase = (url: string) => url.replace(/\/[^/]*$/, `/${name}`);
      return { appUrl: inDatabase(logins.appUrl), systemUrl: inDatabase(logins.systemUrl) };
    },
    async change(name, statement) {
      const owner = openOwner(server.superuserUrl.replace(/\/[^/]*$/, `/${name}`));
      await owner.unsafe(statement).finally(() => owner.end({ timeout: 1 }));
    },
    async stop() {
      await admin.end({ timeout: 1 });
      await server.stop({ hurry: true });
    },
  };
}

export type OwnDatabase = {
  logins: Logins;
  /** As an operator stops it; does nothing when it is stopped. */
  stop(): Promise<void>;
  start(): Promise<void>;
};

/** As durable as an installation's. */
export async function openOwnDatabase(directory: string, binaries?: string): Promise<OwnDatabase> {
  const programs = binaries === undefined ? {} : { binaries };
  const first = await startMigrated(directory, programs);
  let server: EmbeddedPostgres | undefined = first.server;
  return {
    logins: first.logins,
    async stop() {
      await server?.stop({ hurry: true });
      server = undefined;
    },
    async start() {
      server ??= await startEmbeddedPostgres({ directory, mustExist: true, ...programs });
    },
  };
}

async function startMigrated(
  directory: string,
  options: Pick<EmbeddedPostgresOptions, "parameters" | "binaries">,
) {
  mkdirSync(directory, { recursive: true });
  const server = await startEmbeddedPostgres({ directory, ...options });
  const { logins } = await setUpDatabase({ ownerUrl: server.ownerUrl });
  return { server, logins };
}
