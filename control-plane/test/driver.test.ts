// The driver when the server closes connections: what scripts/mend-driver.mjs mends after every install.

import { connect, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import postgres from "postgres";
import { beforeAll, describe, expect, it } from "vitest";
import { openPool, type Sql } from "../src/database/connect.ts";
import { socketOptions } from "../src/database/embedded/socket-url.ts";
import { atEnd } from "./support/at-end.ts";
import { createTestDatabase, openRoles, type TestDatabase } from "./support/database.ts";

let database: TestDatabase;
let superuser: Sql;
/** With one connection, so that everybody gets the same one. */
let single: Sql;
beforeAll(async () => {
  database = await createTestDatabase();
  ({ superuser } = openRoles(database));
  single = openPool({ url: database.runtimeUrl, role: "holdfast_system", application: "driver", max: 1 });
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
      // Its caller has heard already; this one goes on all the same, as code does.
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

  it("OPS-02 SEC-01 with a failure: what is asked before its end is refused, and gets nobody else's answer", async () => {
    const { sql, socket } = await overSockets();
    const asked = sql`SELECT pg_sleep(30)`.catch(() => sql`SELECT 2 AS two`.then(() => "answered", String));
    await turn();
    await turn();
    socket().destroy(new Error("the way to the server broke"));
    expect(await asked).toContain("CONNECTION_CLOSED");
    expect(await Promise.all([sql`SELECT 3 AS three`, sql`SELECT 4 AS four`])).toEqual([
      [{ three: 3 }],
      [{ four: 4 }],
    ]);
  });
});

/** One connection, and the socket that it has at the moment. */
async function overSockets(): Promise<{ sql: postgres.Sql; socket: () => Socket }> {
  const sockets: Socket[] = [];
  const sql = postgres(database.superuserUrl, {
    ...socketOptions(database.superuserUrl),
    max: 1,
    socket: ({ path, host: [host], port: [port] }: { path: string; host: string[]; port: number[] }) => {
      const socket = path ? connect(path) : connect(port ?? 0, host);
      sockets.push(socket);
      return new Promise((resolve) => socket.once("connect", () => resolve(socket)));
    },
  } as postgres.Options<Record<string, never>>);
  atEnd(() => sql.end({ timeout: 1 }));
  await sql`SELECT 1`;
  return { sql, socket: () => sockets.at(-1) as Socket };
}
