// The worker: says that it lives, and removes what has had its time and nothing else.

import { addNodeEvidence } from "@holdfast/contracts/endpoints/drift";
import { getPlatformStatus } from "@holdfast/contracts/endpoints/platform";
import { readSettings } from "@holdfast/kit/settings";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { addMember, createOrg, firstAdmin, signInAs, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { enrollTestNode, sendHeartbeatFrom } from "../../testkit/api/nodes.ts";
import { newAllocation } from "../../testkit/api/terminals.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { openTurns } from "../src/mechanisms/background/turns.ts";
import { openSignals } from "../src/mechanisms/signals.ts";
import { removeExpired } from "../src/platform/remove-expired.ts";
import { startWorker } from "../src/worker/main.ts";
import { workerSettings } from "../src/worker/settings.ts";

let api: TestApi;
let superuser: Sql;
let system: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ superuser, system } = openRoles(api.database));
});

describe("heartbeat", () => {
  it("OPS-02 shows in the platform's status while it runs, and no longer after it stopped", async () => {
    const workerState = async () => (await api.operator()(getPlatformStatus, {})).worker.ok;
    expect(await workerState()).toBe(false);
    const settings = readSettings(workerSettings, { HOLDFAST_SYSTEM_DATABASE_URL: api.database.systemUrl });
    const log = createLog({ process: "worker", level: "silent" });
    const worker = await startWorker(settings, log);
    expect(await workerState()).toBe(true);
    await expect
      .poll(async () => {
        // The worker may have written in between.
        await superuser`UPDATE processes SET last_seen_at = now() - interval '21 seconds'`;
        return workerState();
      })
      .toBe(false);
    await worker.stop();
    expect(await superuser`SELECT FROM processes WHERE kind = 'worker'`).toHaveLength(0);
  });
});

describe("signals", () => {
  it("DRIFT-04 wake the worker of the only api when there is new evidence", async () => {
    const org = await createOrg(api, "woken");
    const node = await enrollTestNode(api, org.id);
    const signals = await openSignals(system, createLog({ process: "worker", level: "silent" }));
    onTestFinished(() => signals.stop());
    const heard: string[] = [];
    signals.subscribe("evidence", (ids) => void heard.push(...ids));
    await api.operator(org.id)(addNodeEvidence, { params: { node_id: node.id }, body: { ssh: "failed" } });
    await expect.poll(() => heard).toContain(node.id);
  });
});

describe("overdue renewals", () => {
  it("ID-03 are looked for by the worker, which warns of the node", async () => {
    const org = await createOrg(api, "overdue");
    const node = await enrollTestNode(api, org.id);
    await sendHeartbeatFrom(node);
    await superuser`
      UPDATE node_certificates SET not_before = now() - interval '19 hours', not_after = now() + interval '5 hours'
      WHERE node_id = ${node.id}`;
    const lines: string[] = [];
    const log = createLog({
      process: "worker",
      level: "warn",
      destination: { write: (line) => lines.push(line) },
    });
    const settings = readSettings(workerSettings, { HOLDFAST_SYSTEM_DATABASE_URL: api.database.systemUrl });
    // Only what starts the reconcilers: the database goes on by the real clock.
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const worker = await startWorker(settings, log);
    vi.advanceTimersByTime(60_000);
    await expect
      .poll(() => lines.filter((line) => line.includes("has not renewed its certificate in time")))
      .toEqual([expect.stringContaining(node.id)]);
    await worker.stop();
  });
});

describe("expired grants", () => {
  it("SEC-01 are removed by the worker", async () => {
    const org = await createOrg(api, "expired");
    const node = await enrollTestNode(api, org.id);
    const member = await addMember(api, org, "member@expired.example", "member");
    const { allocationId } = await newAllocation(superuser, org, node.id);
    await superuser`
      INSERT INTO allocation_grants (org_id, allocation_id, grantee_id, level, granted_by, granted_at, expires_at)
      VALUES (${org.id}, ${allocationId}, ${member.me.id}, 'use', 'test', now() - interval '2 hours', now())`;
    const settings = readSettings(workerSettings, { HOLDFAST_SYSTEM_DATABASE_URL: api.database.systemUrl });
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    // A worker of another test may have had the turn just now.
    await superuser`DELETE FROM background_jobs`;
    const worker = await startWorker(settings, createLog({ process: "worker", level: "silent" }));
    vi.advanceTimersByTime(60_000);
    await expect.poll(() => superuser`SELECT FROM allocation_grants`).toHaveLength(0);
    await worker.stop();
    expect(await superuser`SELECT FROM audit_events WHERE action = 'allocation.expire_grant'`).toHaveLength(1);
  });
});

describe("turns of several workers", () => {
  const EVERY = 60;
  const takenAgo = (name: string, seconds: number) =>
    superuser`UPDATE background_jobs SET taken_at = now() - ${seconds} * interval '1 second' WHERE name = ${name}`;

  it("OPS-02 are one worker's each, however many ask at once", async () => {
    const all = Array.from({ length: 10 }, () => openTurns(system, uuidv7()));
    for (const ago of [undefined, 2 * EVERY]) {
      if (ago !== undefined) await takenAgo("race", ago);
      const taken = await Promise.all(all.map((one) => one.take("race", EVERY)));
      expect(taken.filter(Boolean)).toHaveLength(1);
    }
  });

  it("OPS-02 stay with the worker that had the last one, until it stays away or leaves", async () => {
    const [one, other] = [openTurns(system, uuidv7()), openTurns(system, uuidv7())];
    expect(await one.take("kept", EVERY)).toBe(true);
    expect([await one.take("kept", EVERY), await other.take("kept", EVERY)]).toEqual([false, false]);
    await takenAgo("kept", EVERY);
    expect([await other.take("kept", EVERY), await one.take("kept", EVERY)]).toEqual([false, true]);
    await takenAgo("kept", 2 * EVERY);
    expect([await other.take("kept", EVERY), await one.take("kept", EVERY)]).toEqual([true, false]);
    await takenAgo("kept", EVERY);
    await other.leave();
    expect(await one.take("kept", EVERY)).toBe(true);
  });

  it("OPS-02 go on at the other worker when one stops: each sweep is done once", async () => {
    const settings = readSettings(workerSettings, {
      HOLDFAST_SYSTEM_DATABASE_URL: api.database.systemUrl,
      HOLDFAST_TASK_SWEEP_INTERVAL_SECONDS: "1",
    });
    const start = () => startWorker(settings, createLog({ process: "worker", level: "silent" }));
    const workers = [await start(), await start()];
    type Turn = { taken_by: string | null; turns: number };
    const turn = async () =>
      (await superuser<Turn[]>`SELECT taken_by, turns::int FROM background_jobs WHERE name = 'sweep-tasks'`)[0];
    await expect.poll(async () => (await turn())?.turns).toBeGreaterThanOrEqual(3);
    const [{ started } = { started: 0 }] = await superuser<{ started: number }[]>`
      SELECT extract(epoch FROM now() - min(started_at))::float8 AS started FROM processes WHERE kind = 'worker'`;
    // Two that both ran would have had twice as many.
    expect((await turn())?.turns).toBeLessThanOrEqual(Math.ceil(started) + 1);
    // Either may have the turn, and a process that stood still has lost it.
    const ids = await superuser<
      { id: string }[]
    >`SELECT id FROM processes WHERE kind = 'worker' ORDER BY started_at`;
    const last = await turn();
    const holder = ids.findIndex(({ id }) => id === last?.taken_by);
    await workers[holder]?.stop();
    await expect.poll(async () => (await turn())?.taken_by).toBe(ids[1 - holder]?.id);
    await workers[1 - holder]?.stop();
    expect((await turn())?.taken_by).toBeNull();
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
