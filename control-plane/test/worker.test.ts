// The worker: says that it lives, and removes what has had its time and nothing else.

import { getPlatformStatus } from "@holdfast/contracts/endpoints/platform";
import { readSettings } from "@holdfast/kit/settings";
import { createLog } from "@holdfast/service/log";
import { beforeAll, describe, expect, it } from "vitest";
import type { Sql } from "../src/database/connect.ts";
import { removeExpired } from "../src/reconcilers/remove-expired.ts";
import { startWorker } from "../src/worker/main.ts";
import { workerSettings } from "../src/worker/settings.ts";
import { firstAdmin, signInAs, startTestApi, type TestApi } from "./support/api.ts";
import { openRoles } from "./support/database.ts";

let api: TestApi;
let superuser: Sql;
let system: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ superuser, system } = openRoles(api.database));
});

describe("heartbeat", () => {
  it("OPS-01 shows in the platform's status while it runs, and no longer after it stopped", async () => {
    const workerState = async () => (await api.operator()(getPlatformStatus, {})).worker.ok;
    expect(await workerState()).toBe(false);
    const settings = readSettings(workerSettings, { HOLDFAST_DATABASE_URL: api.database.runtimeUrl });
    const log = createLog({ process: "worker", level: "silent" });
    const worker = await startWorker(settings, log);
    expect(await workerState()).toBe(true);
    await superuser`UPDATE processes SET last_seen_at = now() - interval '21 seconds'`;
    expect(await workerState()).toBe(false);
    await worker.stop();
    expect(await superuser`SELECT FROM processes WHERE kind = 'worker'`).toHaveLength(0);
  });
});

describe("remove-expired", () => {
  it("SEC-03 removes expired sessions, links, keys and windows, and keeps the living", async () => {
    await firstAdmin(api);
    await signInAs(api, "root@example.com");
    await superuser`INSERT INTO rate_limits VALUES ('\\x01', now() - interval '1 second', 3), ('\\x02', now() + interval '1 hour', 3)`;
    await superuser`UPDATE sessions SET expires_at = now() WHERE id = (SELECT max(id::text)::uuid FROM sessions)`;
    const count = async (table: string) => (await superuser`SELECT FROM ${superuser(table)}`).length;
    const before = { sessions: await count("sessions"), links: await count("one_time_links") };
    await superuser`UPDATE one_time_links SET expires_at = now() - interval '8 days'`;
    const removed = await removeExpired(system);
    expect(removed).toMatchObject({ sessions: 1, one_time_links: before.links, rate_limits: 1 });
    expect(await count("sessions")).toBe(before.sessions - 1);
    expect(await removeExpired(system)).toMatchObject({ sessions: 0, one_time_links: 0, rate_limits: 0 });
  });
});
