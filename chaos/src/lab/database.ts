// One PostgreSQL for all labs of a run, with a database for each; reached by its socket, from every host alike.
// A scenario that harms PostgreSQL itself gets one of its own.

import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { openOwner } from "@holdfast/control-plane/database/connect";
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from "@holdfast/control-plane/database/embedded/start";
import { setUpDatabase } from "@holdfast/control-plane/database/logins";
import type { Logins } from "@holdfast/control-plane/database/settings";

const execute = promisify(execFile);

export type SharedDatabase = {
  /** A new, migrated database; returns the logins that an api runs with. */
  create(name: string): Promise<Logins>;
  backups(name: string): Backups;
  stop(): Promise<void>;
};

/** As an operator makes and restores them, with PostgreSQL's own tools. */
export type Backups = {
  dump(file: string, ...options: string[]): Promise<void>;
  /** Into a new database of the same name. Whoever uses the present one is stopped before. */
  restore(file: string): Promise<void>;
  /** Only these tables, in place of what they are now. */
  restoreTables(file: string, tables: readonly string[]): Promise<void>;
};

/** These databases live for a minute, in memory. */
const hasty = { fsync: "off", full_page_writes: "off", max_connections: "300" };

/** `programs`: a PostgreSQL with the tools for backups, which the embedded one does not have. */
export async function openSharedDatabase(directory: string, programs?: string): Promise<SharedDatabase> {
  const binaries = programs === undefined ? {} : { binaries: programs };
  const { server, logins } = await startMigrated(directory, { parameters: hasty, ...binaries });
  const admin = openOwner(server.superuserUrl);
  return {
    async create(name) {
      await admin.unsafe(`CREATE DATABASE ${name} TEMPLATE holdfast OWNER holdfast_owner`);
      const inDatabase = (url: string) => url.replace(/\/[^/]*$/, `/${name}`);
      return { appUrl: inDatabase(logins.appUrl), systemUrl: inDatabase(logins.systemUrl) };
    },
    backups(name) {
      if (programs === undefined) throw new Error("the embedded PostgreSQL has no tools for backups");
      const url = server.superuserUrl.replace(/\/[^/]*$/, `/${name}`);
      const tool = (command: string, ...args: string[]) => execute(join(programs, "bin", command), args);
      return {
        dump: async (file, ...options) =>
          void (await tool("pg_dump", `--dbname=${url}`, "--format=custom", `--file=${file}`, ...options)),
        async restore(file) {
          await admin.unsafe(`DROP DATABASE ${name}`);
          await admin.unsafe(`CREATE DATABASE ${name} OWNER holdfast_owner`);
          await tool("pg_restore", `--dbname=${url}`, "--exit-on-error", file);
        },
        async restoreTables(file, tables) {
          const { stdout } = await tool("pg_restore", "--list", file);
          const wanted = stdout
            .split("\n")
            .filter((line) => line.split(" ").some((word) => tables.includes(word)));
          writeFileSync(`${file}.list`, wanted.join("\n"));
          const replacing = ["--exit-on-error", "--single-transaction", "--clean", `--use-list=${file}.list`];
          await tool("pg_restore", `--dbname=${url}`, ...replacing, file);
        },
      };
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
