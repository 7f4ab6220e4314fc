// Who a tenant's connection can become: nobody, whatever SQL runs on it. On the embedded database, on one that somebody
// else runs, and on one from before the logins were separate.

import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { getMe } from "@holdfast/contracts/endpoints/me";
import { UsageError } from "@holdfast/kit/settings";
import { beforeAll, describe, expect, it } from "vitest";
import { startTestApi } from "../../testkit/api/api.ts";
import { createTestDatabase, openRoles, type TestDatabase } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { openOwner, openPool, type Sql } from "../src/database/connect.ts";
import { openSandbox } from "../src/database/embedded/testing/sandbox.ts";
import { deriveLogins, setUpDatabase } from "../src/database/logins.ts";
import type { Logins } from "../src/database/settings.ts";

let superuser: Sql;
let shared: TestDatabase;
beforeAll(async () => {
  shared = await createTestDatabase();
  ({ superuser } = openRoles(shared));
});

/** Everything that SQL can try to become somebody else, one after the other on the same session. */
const attempts = (owner: string, login: string) => [
  "SET ROLE holdfast_system",
  `SET ROLE ${owner}`,
  "SET ROLE postgres",
  "SET ROLE NONE; SET ROLE holdfast_system",
  "RESET ROLE; SET ROLE holdfast_system",
  `SET SESSION AUTHORIZATION ${owner}`,
  "SET SESSION AUTHORIZATION holdfast_system",
  "RESET SESSION AUTHORIZATION; SET ROLE holdfast_system",
  "SET SESSION AUTHORIZATION DEFAULT; SET ROLE holdfast_system",
  "SELECT set_config('role', 'holdfast_system', false)",
  "SELECT set_config('session_authorization', 'holdfast_system', false)",
  `GRANT holdfast_system TO ${login}`,
  `ALTER ROLE ${login} SUPERUSER`,
  "DISCARD ALL; SET ROLE holdfast_system",
];

async function expectConfined(appUrl: string, owner: string): Promise<void> {
  const login = new URL(appUrl).username;
  const app = openPool({ url: appUrl, role: "holdfast_app", application: "attack", max: 1 });
  try {
    for (const attempt of attempts(owner, login)) {
      await app.unsafe(attempt).catch(() => undefined);
      const [now] = await app.unsafe("SELECT current_user::text AS current, session_user::text AS session");
      expect(["holdfast_app", login], attempt).toContain(now?.["current"]);
      expect(now?.["session"], attempt).toBe(login);
      const read = await app
        .unsafe("SELECT FROM holdfast.sessions")
        .catch((error: { code: string }) => error.code);
      expect(read, attempt).toBe("42501");
    }
  } finally {
    await app.end({ timeout: 1 });
  }
}

describe("a tenant's connection", () => {
  it("SEC-01 cannot become the system role or the owner on the embedded database", async () => {
    await expectConfined(shared.appUrl, "holdfast_owner");
  });

  it("SEC-01 cannot become the system role or the owner with one external DATABASE_URL", async () => {
    const { ownerUrl, owner } = await externalDatabase();
    const api = await startTestApi({
      database: { ...shared, ownerUrl },
      env: { ...withoutLogins, HOLDFAST_DATABASE_URL: ownerUrl, HOLDFAST_MIGRATE_ON_START: "yes" },
    });
    expect((await api.operator()(getMe, {})).type).toBe("local_operator");
    await expectConfined(deriveLogins(ownerUrl).appUrl, owner);
    const sessions = await superuser<{ usename: string }[]>`
      SELECT DISTINCT usename FROM pg_stat_activity
      WHERE application_name = 'holdfast-api' AND datname = ${new URL(ownerUrl).pathname.slice(1)} ORDER BY usename`;
    expect(sessions.map(({ usename }) => usename)).toEqual([
      expect.stringMatching(/^holdfast_app_/),
      expect.stringMatching(/^holdfast_system_/),
    ]);
    await api.stop();
  });

  it("SEC-01 is refused at the start when its login can become more", async () => {
    await superuser`CREATE ROLE both_roles LOGIN NOINHERIT PASSWORD 'both'`;
    await superuser`GRANT holdfast_app, holdfast_system TO both_roles`;
    atEnd(() => superuserDrops("both_roles"));
    const asBoth = shared.appUrl.replace(/\/\/[^@]*@/, "//both_roles:both@");
    const started = (appUrl: string) =>
      startTestApi({ database: shared, env: { HOLDFAST_APP_DATABASE_URL: appUrl } }).then(
        () => "started",
        (error: unknown) => (error instanceof UsageError ? error.message : String(error)),
      );
    expect(await started(asBoth)).toMatch(
      /login both_roles, .* can become holdfast_system\..*HOLDFAST_APP_DATABASE_URL/,
    );
    expect(await started(shared.ownerUrl)).toMatch(/login holdfast_owner, .*can become .*holdfast_owner/);
    expect(await started(shared.superuserUrl)).toMatch(/login postgres, .*can become holdfast_system/);
    expect(await started(shared.systemUrl)).toMatch(/permission denied to set role "holdfast_app"/);
  });
});

describe("the logins", () => {
  it("OPS-02 are made once by ten replicas that start together, and follow the owner's password", async () => {
    const { ownerUrl, owner } = await externalDatabase();
    const results = await Promise.all(Array.from({ length: 10 }, () => setUpDatabase({ ownerUrl })));
    expect(new Set(results.map(({ logins }) => JSON.stringify(logins))).size).toBe(1);
    await superuser.unsafe(`ALTER ROLE ${owner} PASSWORD 'another'`);
    const changed = ownerUrl.replace(/\/\/[^@]*@/, `//${owner}:another@`);
    const { logins } = await setUpDatabase({ ownerUrl: changed });
    expect(logins).not.toEqual(results[0]?.logins);
    expect(await whoAnswers(logins)).toEqual(["holdfast_app", "holdfast_system"]);
    await expect(whoAnswers(results[0]?.logins as Logins)).rejects.toThrow("password authentication failed");
  });

  it("OPS-02 may be the operator's own: missing ones are made, and no existing password is changed", async () => {
    const { ownerUrl } = await externalDatabase();
    const names = [`own_app_${hex()}`, `own_system_${hex()}`] as const;
    const as = (name: string, password: string) => ownerUrl.replace(/\/\/[^@]*@/, `//${name}:${password}@`);
    const logins = { appUrl: as(names[0], "p%40ss-1"), systemUrl: as(names[1], "pass-2") };
    atEnd(() => superuserDrops(...names));
    await setUpDatabase({ ownerUrl, logins });
    expect(await whoAnswers(logins)).toEqual(["holdfast_app", "holdfast_system"]);
    await expectConfined(logins.appUrl, new URL(ownerUrl).username);
    const wrong = setUpDatabase({ ownerUrl, logins: { ...logins, appUrl: as(names[0], "wrong") } });
    await expect(wrong).rejects.toThrow(`PostgreSQL does not accept the login ${names[0]}`);
    expect(await whoAnswers(logins)).toEqual(["holdfast_app", "holdfast_system"]);
  });

  it("OPS-02 say what is missing: a password in the URL, the other URL, the right to make them", async () => {
    expect(() => deriveLogins("postgres://me@db/holdfast")).toThrow(
      /holds no password.*HOLDFAST_APP_DATABASE_URL/,
    );
    const one = startTestApi({ database: shared, env: { HOLDFAST_SYSTEM_DATABASE_URL: "" } });
    await expect(one).rejects.toThrow("HOLDFAST_APP_DATABASE_URL and HOLDFAST_SYSTEM_DATABASE_URL together");
    const { ownerUrl, owner } = await externalDatabase({ mayCreateRoles: false });
    await expect(setUpDatabase({ ownerUrl })).rejects.toThrow(
      new RegExp(`"${owner}" may not set up.*As a superuser run: ALTER ROLE "${owner}" CREATEROLE; GRANT`),
    );
  });

  it("OPS-02 are named after their database, whatever it is called", () => {
    const named = (database: string) => new URL(deriveLogins(`postgres://me:pw@db/${database}`).appUrl).username;
    expect(named("holdfast")).toBe("holdfast_app_holdfast");
    expect(named("My%20DB")).toMatch(/^holdfast_app_[0-9a-f]{16}$/);
    expect(named("x".repeat(60))).toMatch(/^holdfast_app_[0-9a-f]{16}$/);
    expect(named("a")).not.toBe(named("b"));
  });
});

describe("a data directory from before the logins were separate", () => {
  it("SEC-01 OPS-01 is brought up to date by itself, and its old login can become nobody", async () => {
    const sandbox = await openSandbox();
    atEnd(() => sandbox.cleanUp());
    const server = await sandbox.start({ parameters: { fsync: "off" } });
    await setUpDatabase({ ownerUrl: server.ownerUrl });
    const admin = openOwner(server.superuserUrl.replace(/\/postgres$/, "/holdfast"));
    const owner = openOwner(server.ownerUrl);
    await admin`DROP OWNED BY holdfast_app_holdfast, holdfast_system_holdfast`;
    await admin`DROP ROLE holdfast_app_holdfast, holdfast_system_holdfast`;
    await admin`CREATE ROLE holdfast_runtime LOGIN NOINHERIT PASSWORD 'old'`;
    await admin`GRANT CONNECT ON DATABASE holdfast TO holdfast_runtime`;
    await owner`GRANT holdfast_app, holdfast_system TO holdfast_runtime`;
    await owner`DELETE FROM schema_migrations WHERE version = 9`;
    await Promise.all([admin.end(), owner.end()]);
    const path = join(sandbox.directory, "credentials.json");
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), runtime: "old" }));
    await server.stop({ hurry: true });

    const again = await sandbox.start({ parameters: { fsync: "off" } });
    const { logins } = await setUpDatabase({ ownerUrl: again.ownerUrl });
    expect(await whoAnswers(logins)).toEqual(["holdfast_app", "holdfast_system"]);
    await expectConfined(logins.appUrl, "holdfast_owner");
    const old = openOwner(again.ownerUrl.replace(/\/\/[^@]*@/, "//holdfast_runtime:old@"));
    await expect(old`SET ROLE holdfast_system`).rejects.toThrow("permission denied");
    await expect(old`SET ROLE holdfast_app`).rejects.toThrow("permission denied");
    await old.end();
    await again.stop({ hurry: true });
  });
});

const withoutLogins = { HOLDFAST_APP_DATABASE_URL: "", HOLDFAST_SYSTEM_DATABASE_URL: "" };
const hex = () => randomBytes(4).toString("hex");

/** The roles that the two logins have. */
async function whoAnswers({ appUrl, systemUrl }: Logins): Promise<string[]> {
  const ask = async (url: string, role: "holdfast_app" | "holdfast_system") => {
    const sql = openPool({ url, role, application: "test", max: 1 });
    try {
      const [row] = await sql`SELECT current_user::text AS name`;
      return String(row?.["name"]);
    } finally {
      await sql.end({ timeout: 1 });
    }
  };
  return [await ask(appUrl, "holdfast_app"), await ask(systemUrl, "holdfast_system")];
}

/** As an operator with a server of their own makes one: an owner who is no superuser. */
async function externalDatabase({ mayCreateRoles = true } = {}): Promise<{ ownerUrl: string; owner: string }> {
  const database = await createTestDatabase({ empty: true });
  const owner = `owner_${hex()}`;
  await superuser.unsafe(`CREATE ROLE ${owner} LOGIN ${mayCreateRoles ? "CREATEROLE" : ""} PASSWORD 'theirs'`);
  await superuser.unsafe(`GRANT holdfast_app, holdfast_system TO ${owner} WITH ADMIN ${mayCreateRoles}`);
  await superuser.unsafe(`ALTER DATABASE ${database.name} OWNER TO ${owner}`);
  const ownerUrl = database.ownerUrl.replace(/\/\/[^@]*@/, `//${owner}:theirs@`);
  const derived = Object.values(deriveLogins(ownerUrl)).map((url) => new URL(url).username);
  // Before the database goes, which cannot go with roles that own something in it.
  atEnd(async () => {
    await superuser.unsafe(`ALTER DATABASE ${database.name} OWNER TO postgres`);
    const inside = openOwner(database.superuserUrl);
    await inside.unsafe(`REASSIGN OWNED BY ${owner} TO postgres`);
    await inside.end();
    await superuser.unsafe(`DROP DATABASE ${database.name} WITH (FORCE)`);
    await superuserDrops(...derived, owner);
  });
  return { ownerUrl, owner };
}

async function superuserDrops(...names: string[]): Promise<void> {
  const admin = openOwner(shared.superuserUrl);
  for (const name of names) await admin.unsafe(`DROP ROLE IF EXISTS ${name}`);
  await admin.end();
}
