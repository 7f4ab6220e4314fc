// Brings the schema up to date from the numbered files in db/migrations. Many replicas may start
// at once: an advisory lock lets one work while the others wait and then find nothing to do.
// Applied files are remembered with their digest: history that was edited stops the start.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { UsageError } from "@holdfast/kit/settings";
import { openOwner, type Queryable, SCHEMA } from "./connect.ts";

type Migration = { version: number; name: string; sql: string; digest: string };

const directory = new URL("../../db/migrations/", import.meta.url);
/** Any constant will do, as long as nothing else in the database uses it. */
const LOCK = 4_017_266_301;
const OLDEST_POSTGRES = 15;

let loaded: Migration[] | undefined;

export function knownMigrations(): Migration[] {
  loaded ??= readdirSync(directory)
    .filter((file) => /^\d{4}_\w+\.sql$/.test(file))
    .sort()
    .map((file) => {
      const sql = readFileSync(new URL(file, directory), "utf8");
      return {
        version: Number(file.slice(0, 4)),
        name: file,
        sql,
        digest: createHash("sha256").update(sql).digest("hex"),
      };
    });
  return loaded;
}

export async function migrate(options: { url: string }): Promise<{ applied: string[] }> {
  const sql = openOwner(options.url);
  try {
    await refuseOldServer(sql);
    if ((await pendingMigrations(sql)).length === 0) return { applied: [] };
    // A session lock: it outlives each migration's own transaction and ends with the connection.
    await sql`SELECT pg_advisory_lock(${LOCK})`;
    await sql`CREATE SCHEMA IF NOT EXISTS ${sql(SCHEMA)}`;
    await sql`
      CREATE TABLE IF NOT EXISTS schema_migrations (
        version integer PRIMARY KEY, name text NOT NULL, digest text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now())`;
    const pending = await pendingMigrations(sql);
    for (const migration of pending) {
      await sql.begin(async (tx) => {
        await tx.unsafe(migration.sql).catch(explainRefusal);
        await tx`
          INSERT INTO schema_migrations (version, name, digest)
          VALUES (${migration.version}, ${migration.name}, ${migration.digest})`;
      });
    }
    return { applied: pending.map((migration) => migration.name) };
  } finally {
    await sql.end();
  }
}

/** Migrations of this version that are not applied to the database. Throws when an applied file was edited since. */
export async function pendingMigrations(sql: Queryable): Promise<Migration[]> {
  const [table] = await sql<{ present: boolean }[]>`
    SELECT to_regclass(${`${SCHEMA}.schema_migrations`}) IS NOT NULL AS present`;
  if (!table?.present) return knownMigrations();
  const rows = await sql<{ version: number; digest: string }[]>`SELECT version, digest FROM schema_migrations`;
  const applied = new Map(rows.map((row) => [row.version, row.digest]));
  for (const migration of knownMigrations()) {
    const digest = applied.get(migration.version);
    if (digest !== undefined && digest !== migration.digest) {
      throw new UsageError(
        `Migration ${migration.name} was changed after it had been applied to this database. ` +
          "Restore the file and put the change into a new migration.",
      );
    }
  }
  return knownMigrations().filter((migration) => !applied.has(migration.version));
}

/** An error with a hint is meant for the operator; any other is a bug in the migration. */
function explainRefusal(error: { message: string; hint?: string }): never {
  throw error.hint ? new UsageError(`The migration failed: ${error.message}. ${error.hint}`) : error;
}

async function refuseOldServer(sql: Queryable): Promise<void> {
  const [server] = await sql<{ number: number; version: string }[]>`
    SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version`;
  if (server && server.number < OLDEST_POSTGRES * 10_000) {
    throw new UsageError(
      `HOLDFAST_DATABASE_URL points to PostgreSQL ${server.version}; Holdfast needs ${OLDEST_POSTGRES} or newer.`,
    );
  }
}
