// Kills at every moment: the next start must find its way back by itself, with every row that was
// acknowledged.

import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, existsSync, readdirSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { chooseAccount } from "./account.ts";
import { prepareBinaries } from "./binaries.ts";
import { readPidFile, stopLeftOver } from "./left-over.ts";
import { serverArguments } from "./parameters.ts";
import { ask, connect, openSandbox, type Sandbox, until } from "./testing/sandbox.ts";

// Databases are made on a disk that others may keep busy.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const startAndStay = fileURLToPath(new URL("./testing/start-and-stay.ts", import.meta.url));

function startInAnotherProcess(directory: string): ChildProcess {
  return spawn(process.execPath, [startAndStay, directory], { stdio: ["ignore", "pipe", "inherit"] });
}

async function killAndWait(child: ChildProcess): Promise<void> {
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exited;
}

describe("after a kill", () => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await openSandbox();
    const server = await sandbox.start();
    await ask(server.ownerUrl, "CREATE TABLE acknowledged (number int PRIMARY KEY)");
    await server.stop();
  });
  afterAll(() => sandbox.cleanUp());

  it("OPS-01 recovers after kill -9 of the postmaster during writes", async () => {
    const server = await sandbox.start();
    const sql = connect(server.ownerUrl);
    let acknowledged = 0;
    const writing = (async () => {
      for (;;) {
        await sql`INSERT INTO acknowledged VALUES (${acknowledged + 1})`;
        acknowledged += 1;
      }
    })().catch(() => undefined);
    await until(() => acknowledged >= 50);
    process.kill(server.pid, "SIGKILL");
    await server.exited;
    await sql.end({ timeout: 0 });
    await writing;

    const again = await sandbox.start();
    const kept = Number(await ask(again.ownerUrl, "SELECT count(*)::int FROM acknowledged"));
    // One more may have been committed whose answer never arrived.
    expect(kept - acknowledged).toBeOneOf([0, 1]);
    await again.stop();
  });

  it("OPS-01 ends orphaned backends that still hold the database", async () => {
    const server = await sandbox.start();
    const sql = connect(server.ownerUrl);
    // Computes without ever looking whether the postmaster lives.
    const busy = sql`SELECT count(*) FROM generate_series(1, 100000000000)`.catch(() => undefined);
    await until(async () => (await ask(server.superuserUrl, busyBackends)) === 1);
    process.kill(server.pid, "SIGKILL");
    await server.exited;
    const notes: string[] = [];
    const again = await sandbox.start({ onProgress: (text) => notes.push(text) });
    expect(notes.join()).toContain("orphaned PostgreSQL processes");
    expect(await ask(again.ownerUrl, "SELECT 1")).toBe(1);
    await sql.end({ timeout: 0 });
    await busy;
    await again.stop();
  });

  /** A postmaster that nobody watches over. */
  async function leaveBehind(): Promise<{ pid: number | undefined; ended: Promise<unknown> }> {
    const account = chooseAccount({ dataDirectory: sandbox.dataDirectory });
    const { postgres } = prepareBinaries({ directory: sandbox.directory, account, onProgress: () => undefined });
    const socketDirectory = join(sandbox.directory, "run");
    const args = serverArguments({ dataDirectory: sandbox.dataDirectory, socketDirectory, extra: {} });
    const leftOver = spawn(postgres, args, { ...account, detached: true, cwd: "/", stdio: "ignore" });
    const ended = new Promise((resolve) => leftOver.once("exit", resolve));
    await until(() => readPidFile(sandbox.dataDirectory)?.ready === true);
    return { pid: leftOver.pid, ended };
  }

  it("OPS-01 stops a left-over postmaster of this directory, and does not adopt it", async () => {
    const leftOver = await leaveBehind();
    const server = await sandbox.start();
    await leftOver.ended;
    expect(server.pid).not.toBe(leftOver.pid);
    expect(await ask(server.ownerUrl, "SELECT 1")).toBe(1);
    await server.stop();
  });

  it("OPS-01 stops a left-over postmaster through a symbolic link to its directory", async () => {
    const leftOver = await leaveBehind();
    const link = `${sandbox.directory}-link`;
    symlinkSync(sandbox.directory, link);
    const notes: string[] = [];
    await stopLeftOver(join(link, "data"), (text) => notes.push(text));
    expect(notes.join()).toContain(`pid ${leftOver.pid}`);
    expect(sandbox.processes()).toEqual([]);
    await leftOver.ended;
  });

  it("OPS-01 stops a left-over postmaster whose pid file is gone", async () => {
    const leftOver = await leaveBehind();
    unlinkSync(join(sandbox.dataDirectory, "postmaster.pid"));
    await stopLeftOver(sandbox.dataDirectory, () => undefined);
    expect(sandbox.processes()).toEqual([]);
    await leftOver.ended;
  });

  it("OPS-01 finds nothing left over where there is no database", async () => {
    const notes: string[] = [];
    await stopLeftOver(join(sandbox.directory, "nowhere"), (text) => notes.push(text));
    expect(notes).toEqual([]);
  });

  it("OPS-01 is not misled by a pid file that names a living stranger", async () => {
    writeFileSync(join(sandbox.dataDirectory, "postmaster.pid"), `${process.pid}\n${sandbox.dataDirectory}\n`);
    const server = await sandbox.start();
    expect(await ask(server.ownerUrl, "SELECT 1")).toBe(1);
    await server.stop();
  });

  it("OPS-01 ends with its supervisor, even when that is killed", async () => {
    const supervisor = startInAnotherProcess(sandbox.directory);
    const said = new Promise<string>((resolve) =>
      supervisor.stdout?.once("data", (text) => resolve(String(text))),
    );
    const pid = Number(await said);
    expect(sandbox.processes()).toContain(pid);
    await killAndWait(supervisor);
    await until(() => sandbox.processes().length === 0);
    expect(readPidFile(sandbox.dataDirectory)).toBeUndefined();
  });
});

const busyBackends = `SELECT count(*)::int FROM pg_stat_activity
  WHERE query LIKE '%generate_series(1, 1%' AND state = 'active' AND pid <> pg_backend_pid()`;

describe("a first start that is cut off", () => {
  const hasItsName = (directory: string) => existsSync(join(directory, "data"));
  /** What has appeared when the kill comes: just now, unless this process stood still while it was there. */
  const moments: Record<string, (directory: string) => boolean> = {
    "the passwords are written": (directory) => existsSync(join(directory, "credentials.json")),
    "initdb has begun": (directory) => unfinished(directory) !== undefined || hasItsName(directory),
    "initdb is at work": (directory) => insideUnfinished(directory, "base/1") || hasItsName(directory),
    "initdb is done": (directory) => insideUnfinished(directory, "base/5") || hasItsName(directory),
    "the database has its name": hasItsName,
    "the server is starting": (directory) => existsSync(join(directory, "data/postmaster.pid")),
  };

  it.for(Object.keys(moments))("OPS-01 is taken up again when killed once %s", async (moment) => {
    const sandbox = await openSandbox();
    const supervisor = startInAnotherProcess(sandbox.directory);
    await until(() => moments[moment]?.(sandbox.directory) === true);
    await killAndWait(supervisor);
    const server = await sandbox.start();
    expect(await ask(server.ownerUrl, "SELECT 1")).toBe(1);
    await server.stop();
    expect(unfinished(sandbox.directory)).toBeUndefined();
    await sandbox.cleanUp();
  });

  it("OPS-01 finds its way from every state that a crash can leave, twice", async () => {
    const sandbox = await openSandbox();
    const first = await sandbox.start();
    await first.stop();
    const states: Record<string, () => void> = {
      "half a database beside": () =>
        cpSync(join(sandbox.dataDirectory, "base/1"), `${sandbox.dataDirectory}.unfinished-x1`, {
          recursive: true,
        }),
      "passwords, no database": () => rmSync(sandbox.dataDirectory, { recursive: true }),
      "database, no passwords": () => unlinkSync(join(sandbox.directory, "credentials.json")),
      "no socket directory": () => rmSync(join(sandbox.directory, "run"), { recursive: true }),
      "an old socket lock": () =>
        writeFileSync(join(sandbox.directory, "run/.s.PGSQL.5432.lock"), `${process.pid}\n`, { mode: 0o600 }),
    };
    for (const state of [...Object.values(states), ...Object.values(states)]) {
      state();
      const server = await sandbox.start();
      expect(await ask(server.ownerUrl, "SELECT 1")).toBe(1);
      await server.stop();
    }
    await sandbox.cleanUp();
  });
});

function unfinished(directory: string): string | undefined {
  if (!existsSync(directory)) return undefined;
  return readdirSync(directory).find((name) => name.startsWith("data.unfinished-"));
}

function insideUnfinished(directory: string, path: string): boolean {
  const name = unfinished(directory);
  return name !== undefined && existsSync(join(directory, name, path));
}
