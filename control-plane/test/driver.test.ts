// The database layer when the server closes connections, and when the schema changes under prepared statements.

import { createServer, Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { createTestDatabase, openRoles, type TestDatabase } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { isUnavailable, openPool, type Sql, withOrg } from "../src/database/connect.ts";
import { openSql } from "../src/database/sql/sql.ts";

let database: TestDatabase;
let superuser: Sql;
let app: Sql;
/** With one connection, so that everybody gets the same one. */
let single: Sql;
beforeAll(async () => {
  database = await createTestDatabase();
  ({ superuser, app } = openRoles(database));
  single = openPool({ url: database.systemUrl, role: "holdfast_system", application: "driver", max: 1 });
  atEnd(() => single.end({ timeout: 1 }));
});

const cut = () =>
  superuser`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'driver'`;

describe("a connection that the server closes", () => {
  it("OPS-02 under a transaction: its next statement is refused, and nobody else's is touched", async () => {
    const begun = Promise.withResolvers<void>();
    const mayGoOn = Promise.withResolvers<void>();
    const later = Promise.withResolvers<unknown>();
    const lost = single.begin(async (tx) => {
      await tx`SELECT 1`;
      begun.resolve();
      await mayGoOn.promise;
      // Its caller knows already; this one goes on all the same, as code does.
      await tx`SELECT set_config('holdfast.trespass', 'yes', false)`.then(later.resolve, later.resolve);
    });
    lost.catch(() => undefined);
    await begun.promise;
    expect(await cut()).toHaveLength(1);
    await expect(lost).rejects.toThrow();
    const seen = await single.begin(async (tx) => {
      await tx`SELECT 1`;
      mayGoOn.resolve();
      await later.promise;
      return tx`SELECT current_setting('holdfast.trespass', true) AS trespass`;
    });
    expect(seen[0]?.["trespass"] ?? null).toBeNull();
    expect(await later.promise).toBeInstanceOf(Error);
  });

  it("OPS-02 under a transaction that goes on at once: its next statement is refused, and the process stays", async () => {
    const later = Promise.withResolvers<unknown>();
    const lost = single.begin(async (tx) => {
      await tx`SELECT 1`;
      await cut();
      await expect.poll(() => tx`SELECT 1`.then(() => undefined, String)).toBeDefined();
      await tx`SELECT repeat('more than is put off', 1000)`.then(later.resolve, later.resolve);
    });
    await expect(lost).rejects.toThrow();
    expect(await later.promise).toBeInstanceOf(Error);
    expect(await single`SELECT 1 AS one`).toEqual([{ one: 1 }]);
  });

  it("OPS-02 between a query and its writing: the query is refused, and the next one is answered", async () => {
    const { sql, socket } = await overSockets();
    // A socket closes at the end of this turn of the loop, and what is asked now is written in the next.
    await turn();
    socket().destroy();
    const asked = sql`SELECT 2`.then(() => "answered", String);
    expect(await asked).toContain("CONNECTION_CLOSED");
    expect(await sql`SELECT 3 AS three`).toEqual([{ three: 3 }]);
  });

  it("OPS-02 SEC-01 with a failure: what is asked before its end gets its own answer, from another connection", async () => {
    const { sql, socket } = await overSockets();
    const refused = vi.fn();
    const asked = sql`SELECT pg_sleep(30)`.catch((error: unknown) => {
      refused(String(error));
      return sql`SELECT 2 AS two`;
    });
    await turn();
    await turn();
    socket().destroy(new Error("the way to the server broke"));
    expect(await asked).toEqual([{ two: 2 }]);
    expect(refused).toHaveBeenCalledExactlyOnceWith(expect.stringContaining("CONNECTION_CLOSED"));
    expect(await Promise.all([sql`SELECT 3 AS three`, sql`SELECT 4 AS four`])).toEqual([
      [{ three: 3 }],
      [{ four: 4 }],
    ]);
  });

  it("OPS-02 while others wait for it: they get another one", async () => {
    await single`SELECT 1`;
    const slow = single`SELECT pg_sleep(30)`.then(() => "answered", isUnavailable);
    const waiting = [single`SELECT 1 AS n`, single`SELECT 2 AS n`];
    await expect
      .poll(() => superuser`SELECT FROM pg_stat_activity WHERE application_name = 'driver' AND state = 'active'`)
      .toHaveLength(1);
    await cut();
    expect(await slow).toBe(true);
    expect(await Promise.all(waiting)).toEqual([[{ n: 1 }], [{ n: 2 }]]);
  });
});

describe("a transaction", () => {
  it("OPS-02 fails when one of its statements failed, whoever waited for that", async () => {
    const caught = single.begin(async (tx) => {
      await tx`SELECT 1 / 0`.catch(() => undefined);
      return "done";
    });
    await expect(caught).rejects.toMatchObject({ code: "22012" });
    const unnoticed = single.begin((tx) => {
      tx`SELECT pg_sleep(0.01), 1 / 0`.catch(() => undefined);
      return "done";
    });
    await expect(unnoticed).rejects.toMatchObject({ code: "22012" });
    expect(await single`SELECT 1 AS one`).toEqual([{ one: 1 }]);
  });

  it("SEC-01 refuses statements once it is over", async () => {
    const kept = await single.begin((tx) => ({ tx }));
    await expect(kept.tx`SELECT 1`).rejects.toThrow("the transaction has been committed");
    const failing = Promise.withResolvers<unknown>();
    const thrown = single.begin(async (tx) => {
      setImmediate(() => void tx`SELECT 1`.then(failing.resolve, failing.resolve));
      throw new Error("no");
    });
    await expect(thrown).rejects.toThrow("no");
    expect(String(await failing.promise)).toContain("the transaction has been rolled back");
  });

  it("SEC-01 takes an organization's id as a value, whatever it contains", async () => {
    const hostile = "'; SET ROLE holdfast_system; --\\";
    const [row] = await withOrg(app, hostile, (tx) => tx`SELECT current_setting('holdfast.org_id') AS org`);
    expect(row?.["org"]).toBe(hostile);
    const [after] = await app`SELECT current_setting('holdfast.org_id', true) AS org`;
    expect(after?.["org"] || null).toBeNull();
  });
});

describe("a schema that changes under a running process", () => {
  it("OPS-02 makes statements prepared again instead of failing them", async () => {
    const sql = openSql({ ...anybody(), max: 2 });
    atEnd(() => sql.end({ timeout: 1 }));
    await sql`CREATE TABLE growing (a integer)`;
    await sql`INSERT INTO growing VALUES (1)`;
    const read = () => sql`SELECT * FROM growing`;
    const inTransaction = () => sql.begin((tx) => tx`SELECT * FROM growing`);
    await Promise.all([read(), read(), inTransaction()]);
    await superuser`ALTER TABLE public.growing ADD COLUMN b integer`;
    expect(await Promise.all([read(), read()])).toEqual([[{ a: 1, b: null }], [{ a: 1, b: null }]]);
    expect(await Promise.all([inTransaction(), inTransaction()])).toHaveLength(2);

    await superuser`ALTER TABLE public.growing ADD COLUMN c integer`;
    // A transaction cannot go on; its caller is asked to try again, and can.
    const first = await inTransaction().catch((error: unknown) => error);
    expect(isUnavailable(first)).toBe(true);
    expect(await inTransaction()).toEqual([{ a: 1, b: null, c: null }]);
    await sql`DROP TABLE growing`;
  });
});

describe("a database that is away", () => {
  it("OPS-02 is recognised when nothing listens, and when nothing answers", async () => {
    const silent = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => silent.once("listening", resolve));
    atEnd(() => void silent.close());
    const { port } = silent.address() as { port: number };
    const ask = (url: string) => {
      const sql = openSql({ ...anybody(), url, connectTimeoutSeconds: 0.05 });
      return sql`SELECT 1`.catch((error: unknown) => error);
    };
    const errors = [
      await ask(`postgres://me@127.0.0.1:${port}/x`),
      await ask("postgres://me@127.0.0.1:1/x"),
      await ask("postgres://me@%2Fnowhere%2Fat-all/x"),
    ];
    expect(errors).toMatchObject([{ code: "CONNECT_TIMEOUT" }, { code: "ECONNREFUSED" }, { code: "ENOENT" }]);
    expect(errors.map(isUnavailable)).toEqual([true, true, true]);
  });

  it("OPS-02 fails what waits for a pool that is closed", async () => {
    const sql = openSql({ ...anybody(), max: 1 });
    const slow = sql`SELECT pg_sleep(30)`.catch((error: unknown) => error);
    const waits = sql`SELECT 1`.catch((error: unknown) => error);
    await turn();
    await sql.end({ timeout: 0 });
    expect(await waits).toMatchObject({ code: "CONNECTION_ENDED" });
    expect(isUnavailable(await slow)).toBe(true);
    await expect(sql`SELECT 1`).rejects.toMatchObject({ code: "CONNECTION_ENDED" });
  });
});

const anybody = () => ({
  url: database.superuserUrl,
  application: "test",
  max: 1,
  connectTimeoutSeconds: 60,
  parameters: {},
});

/** One connection, and the socket that it has at the moment. */
async function overSockets(): Promise<{ sql: Sql; socket: () => Socket }> {
  const connecting = vi.spyOn(Socket.prototype, "connect");
  const sql = openSql(anybody());
  atEnd(() => sql.end({ timeout: 1 }));
  await sql`SELECT 1`;
  const socket = () => connecting.mock.contexts.at(-1) as Socket;
  return { sql, socket };
}
