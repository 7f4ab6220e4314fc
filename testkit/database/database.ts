// A database of one's own for a test file, cloned from the migrated template in a few milliseconds.

import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import { openOwner, openPool, type Sql } from "../../control-plane/src/database/connect.ts";
import { openSql } from "../../control-plane/src/database/sql/sql.ts";
import { atEnd } from "../lifetime/at-end.ts";

export type TestDatabase = {
  /** Migrations run with this login. */
  ownerUrl: string;
  /** Tenants' requests run with this one, and everything else with the other, as in production. */
  appUrl: string;
  systemUrl: string;
  superuserUrl: string;
  name: string;
};

export async function createTestDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const urls = inject("postgres");
  const name = `test_${randomBytes(6).toString("hex")}`;
  const template = options.empty ? "template1" : "holdfast";
  // Its files are copied, which takes about half of the processor time that writing its pages to the log does.
  const how = `TEMPLATE ${template} STRATEGY FILE_COPY OWNER holdfast_owner`;
  await asSuperuser(urls.superuserUrl, `CREATE DATABASE ${name} ${how}`);
  atEnd(() => asSuperuser(urls.superuserUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
  return {
    name,
    ownerUrl: inDatabase(urls.ownerUrl, name),
    appUrl: inDatabase(urls.appUrl, name),
    systemUrl: inDatabase(urls.systemUrl, name),
    superuserUrl: inDatabase(urls.superuserUrl, name),
  };
}

/** Both roles of the product, and the superuser who sees everything. Closed after the file. */
export function openRoles(database: TestDatabase): { app: Sql; system: Sql; superuser: Sql } {
  const pool = { application: "test", max: 4 };
  const app = openPool({ ...pool, url: database.appUrl, role: "holdfast_app" });
  const system = openPool({ ...pool, url: database.systemUrl, role: "holdfast_system" });
  const superuser = connectAsSuperuser(database.superuserUrl);
  atEnd(async () => {
    await Promise.all([app, system, superuser].map((sql) => sql.end({ timeout: 1 })));
  });
  return { app, system, superuser };
}

function connectAsSuperuser(url: string): Sql {
  return openSql({
    url,
    max: 2,
    application: "test",
    connectTimeoutSeconds: 60,
    parameters: { search_path: "holdfast" },
  });
}

/** Cuts a database off from everybody, and lets them back. */
export async function setReachable(database: TestDatabase, reachable: boolean): Promise<void> {
  const { superuserUrl } = inject("postgres");
  await asSuperuser(superuserUrl, `ALTER DATABASE ${database.name} ALLOW_CONNECTIONS ${reachable}`);
  if (reachable) return;
  // Waits until each has ended: one that only received the signal may still respond.
  const backends = `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '${database.name}'`;
  await asSuperuser(superuserUrl, backends);
}

async function asSuperuser(url: string, statement: string): Promise<void> {
  const sql = openOwner(url);
  try {
    await sql.unsafe(statement);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function inDatabase(url: string, name: string): string {
  return url.replace(/\/[^/]*$/, `/${name}`);
}
