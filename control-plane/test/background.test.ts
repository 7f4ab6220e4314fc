// Background jobs over a real database: who has a turn, what is stored of it, and where people see it.

import { type BackgroundJob, getPlatformStatus } from "@holdfast/contracts/endpoints/platform";
import { readSettings } from "@holdfast/kit/settings";
import { createLog } from "@holdfast/service/log";
import { beforeAll, describe, expect, it } from "vitest";
import { startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { quiet } from "../../testkit/api/replica.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import type { Sql } from "../src/database/connect.ts";
import { startBackground } from "../src/mechanisms/background/driver.ts";
import type { Job } from "../src/mechanisms/background/job.ts";
import { openTurns } from "../src/mechanisms/background/turns.ts";
import { openSignals } from "../src/mechanisms/signals.ts";
import * as modules from "../src/modules.ts";
import { announceProcess } from "../src/platform/presence.ts";
import { startWorker } from "../src/worker/main.ts";
import { workerSettings } from "../src/worker/settings.ts";

let api: TestApi;
let superuser: Sql;
let system: Sql;

beforeAll(async () => {
  api = await startTestApi();
  ({ superuser, system } = openRoles(api.database));
});

const allJobs = Object.values(modules).flatMap((module) => [...module.apiJobs, ...module.workerJobs]);
const statusOf = async (name: string): Promise<BackgroundJob> => {
  const { jobs } = await api.operator()(getPlatformStatus, {});
  const found = jobs.find((job) => job.name === name);
  if (!found) throw new Error(`no job ${name}`);
  return found;
};

/** A worker with one job. Its turns are started by hand: the interval is an hour. */
async function openWorker(job: Partial<Job<undefined>> & { run: Job<undefined>["run"] }) {
  const signals = await openSignals(system, quiet);
  const presence = await announceProcess(system, "worker");
  const turns = openTurns(system, presence.id);
  const declared: Job<undefined> = { name: "sweep-tasks", every: 3_600, runsIn: "one worker", ...job };
  const background = startBackground({
    jobs: [declared],
    context: undefined,
    signals,
    turns,
    log: quiet,
  });
  /** As the worker's heartbeat does it five seconds later. */
  const store = async () => {
    await superuser`UPDATE processes SET last_seen_at = now() - interval '5 seconds' WHERE id = ${presence.id}`;
    await presence.look(background.reports());
  };
  const stop = async () => {
    await background.stop();
    await signals.stop();
  };
  atEnd(stop);
  const turnsHad = () => background.reports()[declared.name]?.turns ?? 0;
  return { id: presence.id, presence, turns, background, signals, store, stop, turnsHad };
}

describe("a turn that a signal starts", () => {
  it("OPS-02 is one worker's, however many it wakes", async () => {
    await superuser`DELETE FROM background_jobs`;
    let runs = 0;
    const open = () =>
      openWorker({
        wakeOn: ["task"],
        run: async () => {
          runs += 1;
        },
      });
    const workers = [await open(), await open(), await open()];
    const publisher = await openSignals(system, quiet);
    atEnd(() => publisher.stop());
    const turns = async () => {
      const [row] = await superuser<{ turns: number }[]>`SELECT turns::int FROM background_jobs`;
      return row?.turns ?? 0;
    };
    for (const expected of [1, 2, 3]) {
      publisher.publish("task", ["018f0000-0000-7000-8000-000000000000"]);
      await expect.poll(turns).toBe(expected);
      // Whoever was woken has asked for the turn by then, and all have got their answer when they have stopped.
      await expect.poll(() => runs).toBe(expected);
    }
    for (const worker of workers) await worker.stop();
    expect([runs, await turns()]).toEqual([3, 3]);
    expect(workers.map(({ turnsHad }) => turnsHad()).toSorted()).toEqual([0, 0, 3]);
  });
});

describe("what is stored of a job", () => {
  it("OPS-02 comes with the heartbeat of the worker, and stays when the worker stops", async () => {
    await superuser`DELETE FROM background_jobs`;
    const worker = await openWorker({ run: async () => ({ expired: 2, requeued: 0 }) });
    expect(await statusOf("sweep-tasks")).toMatchObject({ state: "waiting", turns: 0, last_started_at: null });
    worker.background.wake("sweep-tasks");
    await expect.poll(worker.turnsHad).toBe(1);
    await expect
      .poll(() => worker.background.reports()["sweep-tasks"]?.result)
      .toEqual({ expired: 2, requeued: 0 });
    await worker.store();
    const shown = {
      ...{ state: "ok", runs_in: "one worker", every_seconds: 3_600, turns: 1, overruns: 0, failures: 0 },
      last_result: { expired: 2, requeued: 0 },
    };
    expect(await statusOf("sweep-tasks")).toMatchObject(shown);
    await worker.stop();
    await worker.presence.leave(worker.background.reports());
    await worker.turns.leave();
    expect(await statusOf("sweep-tasks")).toMatchObject(shown);
  });

  it("OPS-02 says that it fails, and why, until a turn succeeds", async () => {
    await superuser`DELETE FROM background_jobs`;
    let failure: string | undefined = "the disk is full";
    const worker = await openWorker({
      run: async () => {
        if (failure) throw new Error(failure);
      },
    });
    worker.background.wake("sweep-tasks");
    await expect.poll(() => worker.background.reports()["sweep-tasks"]?.failing).toBe(true);
    await worker.store();
    expect(await statusOf("sweep-tasks")).toMatchObject({
      ...{ state: "failing", failures: 1, last_failure: "the disk is full", last_result: null },
    });
    failure = undefined;
    worker.background.wake("sweep-tasks");
    await expect.poll(() => worker.background.reports()["sweep-tasks"]?.failing).toBe(false);
    await worker.store();
    expect(await statusOf("sweep-tasks")).toMatchObject({
      state: "ok",
      failures: 1,
      last_failure: "the disk is full",
    });
  });

  it("OPS-02 of a worker that was killed in its turn is the start; another worker has the next turn", async () => {
    await superuser`DELETE FROM background_jobs`;
    const never = Promise.withResolvers<undefined>();
    const killed = await openWorker({ run: () => never.promise });
    killed.background.wake("sweep-tasks");
    await expect.poll(killed.turnsHad).toBe(1);
    const other = await openWorker({ run: async () => ({ expired: 1 }) });
    other.background.wake("sweep-tasks");
    await other.store();
    expect(await statusOf("sweep-tasks")).toMatchObject({ turns: 1, last_duration_ms: null, last_result: null });
    expect((await statusOf("sweep-tasks")).last_started_at).not.toBeNull();
    await superuser`UPDATE background_jobs SET taken_at = now() - interval '2 hours'`;
    other.background.wake("sweep-tasks");
    await expect.poll(other.turnsHad).toBe(1);
    await expect.poll(() => other.background.reports()["sweep-tasks"]?.result).toEqual({ expired: 1 });
    await other.store();
    expect(await statusOf("sweep-tasks")).toMatchObject({ turns: 2, last_result: { expired: 1 } });
    // The one that comes back after all has lost the turn, and does not overwrite what the other stored.
    never.resolve(undefined);
    await killed.stop();
    await killed.store();
    expect(await statusOf("sweep-tasks")).toMatchObject({ last_result: { expired: 1 } });
  });
});

describe("jobs of the processes that run", () => {
  it("OPS-02 are all listed, and those of the api have run", async () => {
    const { jobs } = await api.operator()(getPlatformStatus, {});
    expect(jobs.map(({ name }) => name)).toEqual(allJobs.map(({ name }) => name));
    await expect
      .poll(async () => await statusOf("refresh-node-standings"))
      .toMatchObject({ state: "ok", runs_in: "each api", every_seconds: 1 });
  });

  it("OPS-02 of a worker are stored when it stops, and its process is gone", async () => {
    await superuser`DELETE FROM background_jobs`;
    const settings = readSettings(workerSettings, {
      HOLDFAST_SYSTEM_DATABASE_URL: api.database.systemUrl,
      HOLDFAST_TASK_SWEEP_INTERVAL_SECONDS: "1",
    });
    const worker = await startWorker(settings, createLog({ process: "worker", level: "silent" }));
    await expect
      .poll(async () => (await superuser`SELECT FROM background_jobs WHERE name = 'sweep-tasks'`).length)
      .toBe(1);
    await worker.stop();
    expect(await statusOf("sweep-tasks")).toMatchObject({
      ...{ state: "ok", every_seconds: 1, last_result: { expired: 0, requeued: 0, cancelled: 0 } },
      last_duration_ms: expect.any(Number),
    });
    expect(await superuser`SELECT FROM background_jobs WHERE taken_by IS NOT NULL`).toEqual([]);
  });

  it("OPS-02 are in the metrics", async () => {
    await superuser`DELETE FROM background_jobs`;
    const worker = await openWorker({
      run: async () => {
        throw new Error("no room");
      },
    });
    worker.background.wake("sweep-tasks");
    await expect.poll(() => worker.background.reports()["sweep-tasks"]?.failing).toBe(true);
    await worker.store();
    const text = await (await fetch(`${api.url}/metrics`)).text();
    const value = (name: string) =>
      new RegExp(`^holdfast_background_job_${name}\\{[^}]*job="sweep-tasks"[^}]*\\} (\\S+)$`, "m").exec(text)?.[1];
    expect([value("failing"), value("failures"), value("overruns"), value("turns")]).toEqual(["1", "1", "0", "1"]);
    expect(Number(value("last_start_timestamp_seconds"))).toBeGreaterThan(1_700_000_000);
    expect(text).toMatch(/^holdfast_background_job_failing\{[^}]*job="probe-health"/m);
  });
});

describe("declared jobs", () => {
  it("have a name of their own each, and say whose they are", () => {
    const names = allJobs.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => !/^[a-z]+(-[a-z]+)+$/.test(name))).toEqual([]);
  });
});
