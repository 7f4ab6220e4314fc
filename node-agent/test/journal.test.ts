import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TaskResultReport } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { type ClaimedTask, type Journal, journalOn, openJournal } from "../src/journal/journal.ts";
import { lockStateDirectory, runningAgent } from "../src/journal/lock.ts";
import { readJournal } from "../src/journal/summary.ts";
import { faultyDisk } from "./support/faulty-disk.ts";
import { smallFileSystem } from "./support/small-file-system.ts";

const SIZE = 256 * 1024;
const FOREVER = "2100-01-01T00:00:00.000Z";

function claim(changes: Partial<ClaimedTask> = {}): ClaimedTask {
  const task_id = uuidv7();
  return {
    task_id,
    generation: 1,
    type: "node.noop",
    expires_at: FOREVER,
    idempotent: false,
    resultBytes: 1024,
    ...changes,
  };
}

function report(
  task: { task_id: string; generation: number },
  result: unknown = { echo: null },
): TaskResultReport {
  return {
    task_id: task.task_id,
    generation: task.generation,
    timings: { run: 1 },
    outcome: { status: "succeeded", result },
  };
}

async function finish(journal: Journal, task: ClaimedTask, result?: unknown): Promise<TaskResultReport> {
  journal.claimed(task);
  await journal.started(task.task_id);
  const ended = report(task, result);
  await journal.result(ended);
  return ended;
}

describe("the journal", () => {
  it("TASK-05 keeps an unsent result over a restart until the verdict, and the id until it expires", async () => {
    const directory = scratchDirectory();
    let now = Date.parse("2026-01-01T00:00:00Z");
    const open = () => openJournal(directory, { sizeBytes: SIZE, now: () => now });
    let journal = open();
    const task = claim({ expires_at: "2026-01-01T00:10:00.000Z" });
    const ended = await finish(journal, task, { echo: "ü 😀" });
    await journal.close();

    journal = open();
    expect(journal.unsent()).toEqual([ended]);
    expect(journal.held()).toEqual([{ task_id: task.task_id, generation: 1 }]);
    journal.settled([task.task_id]);
    expect(journal.unsent()).toEqual([]);
    expect(journal.held()).toEqual([]);
    await journal.close();

    journal = open();
    expect(journal.stateOf(task.task_id)).toBe("settled");
    expect(() => journal.claimed(task)).toThrow("settled");
    now = Date.parse("2026-01-01T00:09:59Z");
    expect(journal.stateOf(task.task_id)).toBe("settled");
    now = Date.parse("2026-01-01T00:12:00Z");
    expect(journal.stateOf(task.task_id)).toBe("unknown");
    await journal.close();
  });

  it("TASK-05 names what was interrupted, and forgets what may be offered again", async () => {
    const directory = scratchDirectory();
    let journal = openJournal(directory, { sizeBytes: SIZE });
    const [interrupted, notStarted, repeatable] = [claim({ type: "a.b" }), claim(), claim({ idempotent: true })];
    for (const task of [interrupted, notStarted, repeatable]) journal.claimed(task);
    await journal.started(repeatable.task_id);
    await journal.started(interrupted.task_id);
    expect(journal.interrupted(), "nothing is interrupted while it runs").toEqual([]);
    await journal.close();

    journal = openJournal(directory, { sizeBytes: SIZE });
    expect(journal.interrupted()).toEqual([{ task_id: interrupted.task_id, generation: 1, type: "a.b" }]);
    expect(journal.stateOf(notStarted.task_id)).toBe("unknown");
    expect(journal.stateOf(repeatable.task_id)).toBe("unknown");
    await journal.result(report(interrupted));
    expect(journal.interrupted()).toEqual([]);
    expect(journal.unsentCount()).toBe(1);
    await journal.close();
  });

  it("TASK-05 sends a result for the newest offer, whether that came before or after it", async () => {
    const directory = scratchDirectory();
    let journal = openJournal(directory, { sizeBytes: SIZE });
    const [before, after] = [claim(), claim()];
    journal.claimed(before);
    journal.regenerated(before.task_id, 2);
    await journal.result(report(before));
    await finish(journal, after);
    journal.regenerated(after.task_id, 4);
    journal.regenerated(after.task_id, 3);
    const expected = [
      { ...report(before), generation: 2 },
      { ...report(after), generation: 4 },
    ];
    expect(journal.unsent()).toEqual(expected);
    await journal.close();
    journal = openJournal(directory, { sizeBytes: SIZE });
    expect(journal.unsent()).toEqual(expected);
    await journal.close();
  });

  it("TASK-05 never lacks room for the result of a task it let in", async () => {
    const journal = openJournal(scratchDirectory(), { sizeBytes: SIZE });
    const waiting: ClaimedTask[] = [];
    for (let round = 0; round < 200; round += 1) {
      while (journal.roomFor(20_000) > 0) {
        const task = claim({ resultBytes: 20_000 });
        journal.claimed(task);
        waiting.push(task);
      }
      expect(() => journal.claimed(claim({ resultBytes: 20_000 }))).toThrow("no room");
      const task = waiting.shift();
      if (!task) throw new Error("no task fits at all");
      await journal.result(report(task, "x".repeat(19_998)));
      journal.settled([task.task_id]);
    }
    expect(waiting.length).toBeGreaterThan(2);
    await journal.close();
  });

  it("TASK-05 remembers every id that must not run twice, and bounds the others", async () => {
    const directory = scratchDirectory();
    let journal = openJournal(directory, { sizeBytes: SIZE });
    const once: string[] = [];
    let newest = "";
    for (let number = 0; number < 3000; number += 1) {
      const task = claim({ idempotent: number % 10 !== 0 });
      journal.claimed(task);
      const written = journal.result(report(task));
      if (!task.idempotent) once.push(task.task_id);
      else newest = task.task_id;
      await written;
      journal.settled([task.task_id]);
    }
    await journal.close();
    journal = openJournal(directory, { sizeBytes: SIZE });
    expect(once.filter((taskId) => journal.stateOf(taskId) !== "settled")).toEqual([]);
    expect(journal.stateOf(newest)).toBe("settled");
    expect(statSync(join(directory, "journal.a")).size).toBe(SIZE);
    await journal.close();
  });

  it("TASK-05 lets many wait for one sync, and lets idempotent tasks wait for none", async () => {
    const disk = faultyDisk(SIZE);
    let syncs = 0;
    const journal = journalOn(
      { ...disk, sync: (file) => disk.sync(file).finally(() => (syncs += 1)) },
      { directory: "the test", now: Date.now },
    );
    const tasks = Array.from({ length: 16 }, () => claim({ resultBytes: 100 }));
    for (const task of tasks) journal.claimed(task);
    await Promise.all(tasks.map((task) => journal.started(task.task_id)));
    expect(syncs).toBe(1);
    await Promise.all(tasks.map((task) => journal.result(report(task))));
    expect(syncs).toBe(2);
    await finish(journal, claim({ idempotent: true, resultBytes: 100 }));
    expect(syncs).toBe(2);
  });

  it("TASK-05 refuses what makes no sense", async () => {
    const journal = journalOn(faultyDisk(SIZE), { directory: "the test", now: Date.now });
    const task = claim();
    await expect(journal.started(task.task_id)).rejects.toThrow("is unknown");
    await expect(journal.result(report(task))).rejects.toThrow("which is unknown");
    await finish(journal, task);
    expect(() => journal.claimed(task)).toThrow("it is unsent");
    await expect(journal.result(report(task))).rejects.toThrow("which is unsent");
    journal.settled([uuidv7()]);
    expect(journal.unsentCount()).toBe(1);
  });

  it("TASK-05 keeps no params: only what it is told to", async () => {
    const directory = scratchDirectory();
    const journal = openJournal(directory, { sizeBytes: SIZE });
    const offer = { ...claim(), params: { password: "CANARY" }, signature: "CANARY" };
    await finish(journal, offer);
    await journal.close();
    expect(readFileSync(join(directory, "journal.b")).includes(offer.task_id)).toBe(true);
    expect(readFileSync(join(directory, "journal.b")).includes("CANARY")).toBe(false);
  });
});

describe("a disk that fails", () => {
  it("TASK-05 takes no tasks, keeps results in memory, and writes everything anew when it is well", async () => {
    const disk = faultyDisk(SIZE);
    let now = 0;
    const journal = journalOn(disk, { directory: "/state", now: () => now });
    const [running, settled, idempotent] = [claim(), claim(), claim({ idempotent: true })];
    journal.claimed(running);
    journal.claimed(idempotent);
    await finish(journal, settled);
    disk.failWith(Object.assign(new Error("EROFS: read-only file system"), { code: "EROFS" }));

    await expect(journal.started(running.task_id)).rejects.toMatchObject({ reason: "state_dir_read_only" });
    expect(journal.stateOf(running.task_id)).toBe("held");
    await journal.started(idempotent.task_id);
    await expect(journal.result(report(running))).rejects.toMatchObject({ reason: "state_dir_read_only" });
    expect(journal.unsent().map(({ task_id }) => task_id)).toEqual([settled.task_id, running.task_id]);
    journal.settled([settled.task_id]);
    expect(journal.roomFor(1)).toBe(0);
    expect(() => journal.claimed(claim())).toThrow("/state");

    disk.failWith(undefined);
    now += 1000;
    expect(journal.roomFor(1)).toBeGreaterThan(0);
    const images = disk.imagesAfter(() => ({ kind: "lost" }));
    const again = journalOn(faultyDisk(images), { directory: "/state", now: () => now });
    expect(again.unsent()).toEqual([report(running)]);
    expect(again.stateOf(settled.task_id)).toBe("settled");
  });

  it("TASK-05 does not trust a file after a failed sync", async () => {
    const disk = faultyDisk(SIZE);
    let broken = false;
    const storage = {
      ...disk,
      sync: (file: 0 | 1) => (broken ? Promise.reject(new Error("EIO: i/o error")) : disk.sync(file)),
    };
    const journal = journalOn(storage, { directory: "/state", now: Date.now });
    const task = claim();
    journal.claimed(task);
    broken = true;
    await expect(journal.started(task.task_id)).rejects.toThrow("EIO");
    broken = false;
    // The failed sync marks the pages clean: the next one succeeds without them.
    const found = () => {
      const images = disk.imagesAfter(() => ({ kind: "lost" }));
      return journalOn(faultyDisk(images), { directory: "/state", now: Date.now });
    };
    await journal.started(task.task_id);
    expect(found().stateOf(task.task_id)).toBe("started");
    await journal.result(report(task));
    expect(found().unsent()).toEqual([report(task)]);
  });

  it.skipIf(lacks("root"))("TASK-05 a full disk: results are still journalled, also after a restart", async () => {
    const { directory } = smallFileSystem(1024 * 1024);
    let journal = openJournal(directory, { sizeBytes: SIZE });
    const fill = () => {
      try {
        for (let number = 0; ; number += 1) writeFileSync(join(directory, `filler-${number}`), Buffer.alloc(4096));
      } catch (error) {
        return (error as NodeJS.ErrnoException).code;
      }
    };
    expect(fill()).toBe("ENOSPC");
    const results: TaskResultReport[] = [];
    while (journal.roomFor(10_000) > 0)
      results.push(await finish(journal, claim({ resultBytes: 10_000 }), "x".repeat(9000)));
    expect(results.length).toBeGreaterThan(5);
    expect(() => journal.claimed(claim({ resultBytes: 10_000 }))).toThrow("no room");
    // Enough records for several rewrites.
    for (let generation = 2; generation < 4000; generation += 1) {
      journal.regenerated(results[0]?.task_id ?? "", generation);
    }
    await journal.close();
    expect(fill()).toBe("ENOSPC");
    journal = openJournal(directory, { sizeBytes: SIZE });
    expect(journal.unsent().slice(1)).toEqual(results.slice(1));
    expect(journal.unsent()[0]).toEqual({ ...results[0], generation: 3999 });
    await journal.close();
  });

  it.skipIf(lacks("root"))(
    "TASK-05 a disk that was full from the start: disk_full, and nothing is left behind",
    () => {
      const { directory } = smallFileSystem(300 * 1024);
      expect(() => openJournal(directory, { sizeBytes: SIZE })).toThrow(
        expect.objectContaining({ reason: "disk_full", message: expect.stringContaining(directory) }),
      );
      expect(statSync(join(directory, "journal.b")).size).toBe(0);
      expect(runningAgent(directory)).toBeUndefined();
    },
  );

  it.skipIf(lacks("root"))("TASK-05 a read-only state directory: state_dir_read_only", async () => {
    const { directory, remount } = smallFileSystem(1024 * 1024);
    await openJournal(directory, { sizeBytes: SIZE }).close();
    remount("ro");
    expect(() => openJournal(directory, { sizeBytes: SIZE })).toThrow(
      expect.objectContaining({ reason: "state_dir_read_only" }),
    );
  });

  it("TASK-05 a damaged file is told, and the other one is used", async () => {
    const directory = scratchDirectory();
    const journal = openJournal(directory, { sizeBytes: SIZE });
    const ended = await finish(journal, claim());
    await journal.close();
    writeFileSync(join(directory, "journal.a"), "not a journal");
    const again = openJournal(directory, { sizeBytes: SIZE });
    expect(again.damage).toContain("journal.a is damaged");
    expect(again.unsent()).toEqual([ended]);
    await again.close();
    expect(readJournal(directory)).toMatchObject({ unsent: [ended], started: [] });
    for (const name of ["journal.a", "journal.b"]) writeFileSync(join(directory, name), Buffer.alloc(SIZE, 0x77));
    const anew = openJournal(directory, { sizeBytes: SIZE });
    expect(anew.damage).toContain("begins anew");
    expect(anew.unsent()).toEqual([]);
    await anew.close();
  });

  it("TASK-05 a larger journal is asked for: it grows and keeps what it has", async () => {
    const directory = scratchDirectory();
    const journal = openJournal(directory, { sizeBytes: SIZE });
    const ended = await finish(journal, claim());
    const room = journal.roomFor(1024);
    await journal.close();
    const larger = openJournal(directory, { sizeBytes: 2 * SIZE });
    expect(larger.unsent()).toEqual([ended]);
    expect(larger.roomFor(1024)).toBeGreaterThan(room);
    await larger.close();
  });
});

describe("two agents on one state directory", () => {
  const holder = fileURLToPath(new URL("support/hold-journal.ts", import.meta.url));

  it("TASK-05 the second is refused with the pid of the first; after kill -9 it takes over", async () => {
    const directory = scratchDirectory();
    const child = spawn(process.execPath, [holder, directory], { stdio: ["ignore", "pipe", "inherit"] });
    atEnd(() => child.kill("SIGKILL"));
    await once(child.stdout, "data");
    expect(runningAgent(directory)).toBe(child.pid);
    expect(() => openJournal(directory, { sizeBytes: SIZE })).toThrow(`Another agent (pid ${child.pid})`);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(runningAgent(directory)).toBeUndefined();
    const journal = openJournal(directory, { sizeBytes: 64 * 1024 });
    expect(journal.interrupted()).toMatchObject([{ generation: 3, type: "allocation.provision_user" }]);
    expect(runningAgent(directory)).toBe(process.pid);
    await journal.close();
    expect(existsSync(join(directory, "agent.lock"))).toBe(false);
  });

  it("TASK-05 a lock of an earlier boot, of a pid now used by another, or of one who died taking over, is no lock", () => {
    const directory = scratchDirectory();
    const path = join(directory, "agent.lock");
    for (const stale of [`${process.pid}.1.00000000`, `${process.ppid}.1.deadbeef`, "999999999.5.deadbeef"]) {
      symlinkSync(stale, path);
      symlinkSync("999999998.5.deadbeef", `${path}.next`);
      lockStateDirectory(directory).release();
      expect(existsSync(path)).toBe(false);
      rmSync(`${path}.next`, { force: true });
    }
  });

  it("TASK-05 of many that find a dead holder at once, one wins", async () => {
    const directory = scratchDirectory();
    symlinkSync("999999999.5.deadbeef", join(directory, "agent.lock"));
    const children = Array.from({ length: 6 }, () =>
      spawn(process.execPath, [holder, directory], { stdio: ["ignore", "pipe", "pipe"] }),
    );
    atEnd(() => {
      for (const child of children) child.kill("SIGKILL");
    });
    const outcomes = await Promise.all(
      children.map(async (child) => {
        const [code] = await Promise.race([
          once(child, "exit"),
          once(child.stdout, "data").then(() => ["started"]),
        ]);
        return code;
      }),
    );
    expect(outcomes.filter((outcome) => outcome === "started")).toHaveLength(1);
    expect(readlinkSync(join(directory, "agent.lock"))).toContain(`${runningAgent(directory)}.`);
  });

  it("TASK-05 a file where the lock should be is not taken for one", () => {
    const directory = scratchDirectory();
    writeFileSync(join(directory, "agent.lock"), "");
    expect(() => lockStateDirectory(directory)).toThrow("is not a lock that an agent made. Remove it.");
  });
});
