// Migrations on real servers: many at once, edited history, PostgreSQL 15 and an owner without
// superuser rights.

import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { getMe } from "@holdfast/contracts/endpoints/me";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, tokenFor } from "../../testkit/api/api.ts";
import { createTestDatabase, openRoles } from "../../testkit/database/database.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../src/database/embedded/start.ts";
import { setUpDatabase } from "../src/database/logins.ts";
import { knownMigrations, migrate } from "../src/database/migrate.ts";

describe("many replicas", () => {
  it("OPS-02 applies each migration once when ten start at the same moment", async () => {
    const database = await createTestDatabase({ empty: true });
    const results = await Promise.all(Array.from({ length: 10 }, () => migrate({ url: database.ownerUrl })));
    const applied = results.flatMap((result) => result.applied);
    expect(applied.sort()).toEqual(knownMigrations().map((migration) => migration.name));
    expect(await migrate({ url: database.ownerUrl })).toEqual({ applied: [] });
  });

  it("OPS-02 leaves nothing half done when a migration fails", async () => {
    const database = await createTestDatabase({ empty: true });
    const { superuser } = openRoles(database);
    // The second migration fails on a table that already exists.
    await superuser`CREATE SCHEMA holdfast AUTHORIZATION holdfast_owner`;
    await superuser`CREATE TABLE holdfast.processes (x int)`;
    await expect(migrate({ url: database.ownerUrl })).rejects.toThrow(/processes/);
    const rows = await superuser`SELECT version FROM schema_migrations`;
    expect(rows.map((row) => row["version"])).toEqual([1]);
    expect(await superuser`SELECT to_regclass('holdfast.audit_events') AS t`).toMatchObject([{ t: null }]);
    const [readiness] = await superuser`
      SELECT has_table_privilege('holdfast_system', 'holdfast.schema_migrations', 'SELECT') AS may`;
    expect(readiness?.["may"], "readiness can be queried after every step").toBe(true);
    await superuser`DROP TABLE holdfast.processes`;
    expect((await migrate({ url: database.ownerUrl })).applied).toHaveLength(knownMigrations().length - 1);
  });
});

describe("a second installation on the same server", () => {
  it("OPS-02 names what its owner lacks, and continues once it is granted", async () => {
    const database = await createTestDatabase({ empty: true });
    const { superuser } = openRoles(database);
    await superuser`CREATE ROLE second_owner LOGIN CREATEROLE PASSWORD 'second'`;
    await superuser.unsafe(`ALTER DATABASE ${database.name} OWNER TO second_owner`);
    const url = database.ownerUrl.replace(/\/\/[^@]*@/, "//second_owner:second@");
    await expect(migrate({ url })).rejects.toThrow(
      /As a superuser run: GRANT holdfast_app, holdfast_system TO second_owner/,
    );
    await superuser`GRANT holdfast_app, holdfast_system TO second_owner`;
    expect((await migrate({ url })).applied).toHaveLength(knownMigrations().length);
    const refused = await setUpDatabase({ ownerUrl: url }).catch((error: Error) => error.message);
    const repair = /As a superuser run: (.*)/.exec(String(refused))?.[1] ?? String(refused);
    await superuser.unsafe(repair);
    const { appUrl, systemUrl } = (await setUpDatabase({ ownerUrl: url })).logins;
    await superuser.unsafe(`ALTER DATABASE ${database.name} OWNER TO postgres`);
    for (const role of [appUrl, systemUrl].map((login) => new URL(login).username).concat("second_owner")) {
      await superuser.unsafe(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`);
    }
  });
});

describe("history", () => {
  it("OPS-02 stops when an applied migration was edited", async () => {
    const database = await createTestDatabase();
    const { superuser } = openRoles(database);
    await superuser`UPDATE schema_migrations SET digest = 'edited' WHERE version = 1`;
    await expect(migrate({ url: database.ownerUrl })).rejects.toThrow(/0001_.*was changed after/);
  });

  it("OPS-02 reports that it is not ready while a migration is missing", async () => {
    const api = await startTestApi();
    const { superuser } = openRoles(api.database);
    await superuser`DELETE FROM schema_migrations WHERE version = ${knownMigrations().at(-1)?.version ?? 0}`;
    const readiness = async () => {
      const response = await fetch(`${api.url}/readyz`);
      return { status: response.status, body: await response.json() };
    };
    await expect
      .poll(readiness)
      .toMatchObject({ status: 503, body: { checks: { migrations: { ok: false, reason: "1 pending" } } } });
  });
});

describe("PostgreSQL 15, the oldest supported", () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-pg15-"));
  let server: EmbeddedPostgres | undefined;

  beforeAll(async () => {
    chmodSync(directory, 0o711);
    server = await startEmbeddedPostgres({
      directory: join(directory, "postgres"),
      binaries: fileURLToPath(
        new URL(`../../node_modules/postgresql-15-linux-${process.arch}/native`, import.meta.url),
      ),
      parameters: { fsync: "off" },
    });
  }, 180_000);

  afterAll(async () => {
    await server?.stop({ hurry: true });
    rmSync(directory, { recursive: true, force: true });
  });

  it("OPS-02 migrates it and serves requests from it", async () => {
    if (!server) throw new Error("no server");
    expect(server.version).toMatch(/^15\./);
    const { ownerUrl, superuserUrl } = server;
    const { logins } = await setUpDatabase({ ownerUrl });
    const api = await startTestApi({ database: { name: "holdfast", ownerUrl, superuserUrl, ...logins } });
    const org = await createOrg(api, "fifteen");
    expect((await api.as(await tokenFor(api, org, "owner"))(getMe, {})).organizations[0]?.slug).toBe("fifteen");
    await api.stop();
  });
});
