// What a tenant leaves outside of its home, and who gets it next. Real users, files, IPC objects and disks.

import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { passwd, recordsOf, rootHost, system, type TestUser, testUser } from "../../testkit/tasks/os-users.ts";
import { failureOf, runTask } from "../../testkit/tasks/run-task.ts";
import type { Host } from "../executor.ts";

type Tenant = TestUser & { uid: number };

/** The disks are searched before a uid is given again: on a busy machine with many files that takes its time. */
const SEARCHING_MS = 300_000;
const sharedPlaces = ["/tmp", "/var/tmp", "/dev/shm", "/run/lock"];

async function provisioned(host: Host): Promise<Tenant> {
  const user = testUser();
  const { username, allocation_id } = user;
  const { result } = await runTask("allocation.provision_user", { username, allocation_id }, { host });
  return { ...user, uid: Number(result.uid) };
}

function release({ username, allocation_id }: TestUser, host: Host, onPhase?: (phase: string) => void) {
  return runTask(
    "allocation.deprovision_user",
    { username, allocation_id },
    { host, ...(onPhase && { onPhase }) },
  );
}

function as({ uid }: { uid: number }, script: string): string {
  const ids = ["--reuid", String(uid), "--regid", String(uid), "--clear-groups"];
  const ran = spawnSync("setpriv", [...ids, "sh", "-ec", script], { encoding: "utf8", cwd: "/" });
  expect(ran.stderr).toBe("");
  return ran.stdout;
}

/** A name of this test's own in a shared place, and nothing of it afterwards. */
function named(place: string): string {
  const path = join(place, `hft-${randomBytes(6).toString("hex")}`);
  atEnd(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const inMessageQueues = (...command: string[]) =>
  spawnSync(
    "unshare",
    [
      "--mount",
      "sh",
      "-c",
      `mount -t mqueue mqueue /proc/driver && cd /proc/driver && exec "$@"`,
      "sh",
      ...command,
    ],
    { encoding: "utf8" },
  );

function ipcOf(uid: number): string[] {
  return ["shm", "msg", "sem"].flatMap((kind) =>
    readFileSync(`/proc/sysvipc/${kind}`, "utf8")
      .split("\n")
      .filter((row) => row.trim().split(/\s+/).includes(String(uid))),
  );
}

/** The uids of the range begin again there, as after ten thousand users. */
function wrapAround(host: Host, uid: number): void {
  const record = JSON.stringify({ next_uid: uid, users: recordsOf(host) });
  writeFileSync(join(host.stateDir, "users.json"), record, { mode: 0o600 });
}

describe.skipIf(lacks("root"))("a released user", () => {
  it(
    "BM-02 leaves the next user with its uid neither files nor IPC, and a uid that owns anything is not given",
    async () => {
      const host = rootHost();
      const [ada, bob] = [await provisioned(host), await provisioned(host)];
      const trees = sharedPlaces.map(named);
      for (const tree of trees)
        as(ada, `mkdir -p ${tree}/a/b; echo secret > ${tree}/a/b/c; cp /bin/true ${tree}/s; chmod 4755 ${tree}/s`);
      as(ada, "ipcmk --shmem 4096 --queue --semaphore 1");
      const queue = `hft-${ada.username}`;
      const touch = ["setpriv", "--reuid", String(ada.uid), "--regid", String(ada.uid), "--clear-groups", "touch"];
      expect(inMessageQueues(...touch, queue).status).toBe(0);
      atEnd(() => inMessageQueues("rm", "-f", queue));
      expect(ipcOf(ada.uid)).toHaveLength(3);
      // Where the user could not have written: root put it there, and only root can tell what it is for.
      const closed = named("/var/lib");
      mkdirSync(closed, { mode: 0o700 });
      writeFileSync(join(closed, "of-bob"), "");
      system("chown", String(bob.uid), join(closed, "of-bob"));

      const { result } = await release(ada, host);
      await release(bob, host);
      const left = trees.filter((tree) => existsSync(tree));
      expect({ left, ipc: ipcOf(ada.uid), queues: inMessageQueues("ls").stdout }).toEqual({
        ...{ left: [], ipc: [] },
        queues: expect.not.stringContaining(queue),
      });
      expect(result).toMatchObject({ removed: true, removed_files: 5 * trees.length, removed_ipc: 4 });

      wrapAround(host, ada.uid);
      expect((await provisioned(host)).uid).toBe(ada.uid);
      wrapAround(host, bob.uid);
      expect((await provisioned(host)).uid).not.toBe(bob.uid);
      expect(existsSync(join(closed, "of-bob"))).toBe(true);
    },
    SEARCHING_MS,
  );

  it("BM-02 takes nothing of others along, and nothing through a link", async () => {
    const host = rootHost();
    const [ada, bob] = [await provisioned(host), await provisioned(host)];
    const shared = named("/tmp");
    as(ada, `mkdir -m 777 ${shared}; echo hers > ${shared}/hers`);
    as(bob, `echo his > ${shared}/his; mkdir ${shared}/own; ln -s ${shared} ${shared}/own/up`);
    const precious = join(host.stateDir, "precious");
    writeFileSync(precious, "");
    as(ada, `ln -s ${host.stateDir} ${shared}/link; ln ${shared}/hers ${shared}/own-link`);
    await release(ada, host);
    expect(readFileSync(`${shared}/his`, "utf8")).toBe("his\n");
    expect(lstatSync(shared)).toMatchObject({ uid: 0, gid: 0 });
    for (const name of ["hers", "link", "own-link"]) expect(existsSync(`${shared}/${name}`), name).toBe(false);
    expect(existsSync(`${shared}/own/up`)).toBe(true);
    expect(existsSync(precious)).toBe(true);
  });

  it("BM-02 is not released while something of it cannot be removed, and its uid stays reserved", async () => {
    const host = rootHost();
    const ada = await provisioned(host);
    const stuck = named("/tmp");
    as(ada, `echo immutable > ${stuck}`);
    system("chattr", "+i", stuck);
    const failure = await failureOf(release(ada, host)).finally(() => system("chattr", "-i", stuck));
    expect(failure).toMatchObject({
      code: "files_remain",
      message: expect.stringMatching(/1 files .* uid 7\d{4}/),
    });
    expect(failure.message).not.toContain(stuck);
    expect(passwd(ada.username), "access is gone all the same").toBeUndefined();
    expect(recordsOf(host)[ada.username]).toMatchObject({ uid: ada.uid, state: "removing" });
    expect((await release(ada, host)).result).toMatchObject({ removed: true, removed_files: 1 });
    expect(recordsOf(host)).toEqual({});
  });

  it("BM-02 is not started again by cron, at or a lingering session of its name", async () => {
    const host = rootHost();
    const ada = await provisioned(host);
    const files = ["/var/spool/cron/crontabs", "/var/lib/systemd/linger"].map((directory) => {
      const made = mkdirSync(directory, { recursive: true });
      if (made) atEnd(() => rmSync(made, { recursive: true }));
      const path = join(directory, ada.username);
      atEnd(() => rmSync(path, { force: true }));
      writeFileSync(path, "* * * * * true\n");
      return path;
    });
    const [crontab = ""] = files;
    let whenEnding: boolean | undefined;
    await release(ada, host, (phase) => {
      if (phase === "ending_processes") whenEnding = existsSync(crontab);
    });
    expect(whenEnding, "gone before the processes are").toBe(false);
    for (const path of files) expect(existsSync(path), path).toBe(false);
  });

  it("BM-02 tells how far it is with many files", async () => {
    const host = rootHost();
    const ada = await provisioned(host);
    const tree = named("/var/tmp");
    as(ada, `mkdir ${tree}; cd ${tree}; seq 2500 | xargs touch`);
    const { result, progress } = await release(ada, host);
    expect(result).toMatchObject({ removed_files: 2501 });
    expect(progress).toEqual([{ files: 1000 }, { files: 2000 }]);
  });
});
