// Real users with real processes: what they run is ended, what they had is gone, and nobody else's.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chownSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { dieAtEveryPhase } from "../../testkit/phase-crash/every-phase.ts";
import {
  dieAtPhase,
  hasGroup,
  passwd,
  recordsOf,
  rootHost,
  system,
  type TestUser,
  testUser,
} from "../../testkit/tasks/os-users.ts";
import { failureOf, noEndpoints, noTerminals, runTask } from "../../testkit/tasks/run-task.ts";
import type { Host } from "../executor.ts";
import { endProcesses, processesOf } from "../os-users/processes.ts";

const TYPE = "allocation.deprovision_user";
// Each phase takes some processes of its own, which may be slow to start on a busy machine.
const EVERY_PHASE_MS = 300_000;

function deprovision({ username, allocation_id }: TestUser, host: Host) {
  return runTask(TYPE, { username, allocation_id }, { host });
}

async function provisioned(host: Host): Promise<TestUser & { uid: number }> {
  const user = testUser();
  const { username, allocation_id } = user;
  const { result } = await runTask("allocation.provision_user", { username, allocation_id }, { host });
  return { ...user, uid: Number(result.uid) };
}

/** Runs as the user, and has said so. */
async function startAs(uid: number, script: string) {
  const child = spawn("/bin/sh", ["-c", script], { uid, gid: uid, cwd: "/", stdio: ["ignore", "pipe", "ignore"] });
  atEnd(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child;
}

function isGone(user: TestUser): void {
  expect(passwd(user.username)).toBeUndefined();
  expect(hasGroup(user.username)).toBe(false);
  expect(existsSync(user.home)).toBe(false);
}

describe.skipIf(lacks("root"))("an agent with root", () => {
  it("BM-02 removes the user with its home and its record", async () => {
    const host = rootHost();
    const user = await provisioned(host);
    symlinkSync(host.stateDir, join(user.home, "link"));
    const { result } = await deprovision(user, host);
    expect(result).toMatchObject({
      username: user.username,
      removed: true,
      own_account: false,
      ended_processes: 0,
    });
    isGone(user);
    expect(recordsOf(host)).toEqual({});
    expect(existsSync(host.stateDir), "what a link points to is left alone").toBe(true);
  });

  it("BM-02 finds nothing to do the second time, or for a user it never had", async () => {
    const host = rootHost();
    const user = await provisioned(host);
    await deprovision(user, host);
    for (const nobody of [user, testUser()]) {
      const { result } = await deprovision(nobody, host);
      expect(result).toMatchObject({ username: nobody.username, removed: false, own_account: false });
    }
  });

  it("BM-02 ends what the user runs, also what does not want to", async () => {
    const host = rootHost();
    const user = await provisioned(host);
    const polite = await startAs(user.uid, "echo up; exec sleep 1000");
    const stubborn = await startAs(user.uid, "trap '' TERM; echo up; while :; do sleep 0.1; done");
    const stopped = await startAs(user.uid, "trap '' TERM; echo up; kill -STOP $$");
    const ends = [polite, stubborn, stopped].map((child) => once(child, "exit"));
    const { result } = await deprovision(user, host);
    expect((await Promise.all(ends)).map(([, signal]) => signal)).toEqual(["SIGTERM", "SIGKILL", "SIGKILL"]);
    expect(result.ended_processes).toBeGreaterThanOrEqual(3);
    expect(processesOf(user.uid)).toEqual([]);
    isGone(user);
  });

  it("BM-02 ends processes that fork as fast as they can", async () => {
    const host = rootHost();
    const user = await provisioned(host);
    // Each one starts the next and ends: whoever reads /proc sees pids that are gone already.
    const script = `/tmp/${user.username}.sh`;
    writeFileSync(script, `trap '' TERM\n/bin/sh ${script} &\n`, { mode: 0o644 });
    atEnd(() => rmSync(script, { force: true }));
    const first = await startAs(user.uid, `trap '' TERM; echo up; exec /bin/sh ${script}`);
    await once(first, "exit");
    // All of them share one pipe, which ends with the last of them.
    const last = once(first.stdout.resume(), "end");
    const { result } = await deprovision(user, host);
    expect(result.removed).toBe(true);
    await last;
    isGone(user);
  });

  it("BM-02 ends nobody else's processes", async () => {
    const host = rootHost();
    const [user, neighbour] = [await provisioned(host), await provisioned(host)];
    const theirs = await startAs(neighbour.uid, "echo up; exec sleep 1000");
    await startAs(user.uid, "echo up; exec sleep 1000");
    await deprovision(user, host);
    expect(theirs.exitCode ?? theirs.signalCode).toBeNull();
    expect(processesOf(neighbour.uid)).toEqual([theirs.pid]);
  });

  it.for([0, 1, 1000, 69_999, 80_000, 70_000.5, Number.NaN])(
    "BM-02 never ends processes of uid %s",
    async (uid) => {
      await expect(endProcesses(uid)).rejects.toThrow("no uid of ours");
    },
  );

  it.for(["daemon", "root"])("BM-02 does not touch %s", async (username) => {
    const before = passwd(username);
    const failure = await failureOf(
      runTask(TYPE, { username, allocation_id: randomUUID() }, { host: rootHost() }),
    );
    expect(failure.code).toBe("user_not_ours");
    expect(passwd(username)).toEqual(before);
  });

  it("BM-02 does not touch a user that was replaced by hand under the same name", async () => {
    const host = rootHost();
    const user = await provisioned(host);
    system("userdel", "--remove", user.username);
    system("useradd", "--create-home", user.username);
    expect((await failureOf(deprovision(user, host))).code).toBe("user_not_ours");
    expect(existsSync(user.home)).toBe(true);
  });

  it("BM-02 does not end the processes of somebody who has the uid by now", async () => {
    const host = rootHost();
    const [user, other] = [await provisioned(host), testUser()];
    system("userdel", "--remove", user.username);
    system("useradd", "--uid", String(user.uid), other.username);
    const theirs = await startAs(user.uid, "echo up; exec sleep 1000");
    expect((await failureOf(deprovision(user, host))).code).toBe("user_not_ours");
    expect(theirs.exitCode ?? theirs.signalCode).toBeNull();
  });

  it("BM-02 leaves a user alone that belongs to another allocation by now", async () => {
    const host = rootHost();
    const user = await provisioned(host);
    const { result } = await deprovision({ ...user, allocation_id: randomUUID() }, host);
    expect(result.removed).toBe(false);
    expect(passwd(user.username)).toBeDefined();
  });

  it("BM-02 refuses a home that is not the user's own", async () => {
    const host = rootHost();
    const user = await provisioned(host);
    chownSync(user.home, 1, 1);
    expect((await failureOf(deprovision(user, host))).code).toBe("home_not_ours");
    expect(existsSync(user.home)).toBe(true);
    chownSync(user.home, user.uid, user.uid);
    system("usermod", "--home", "/srv", user.username);
    expect((await failureOf(deprovision(user, host))).code).toBe("home_not_ours");
    expect(passwd(user.username)?.shell, "still usable").toBe("/bin/bash");
  });

  it("BM-02 removes nothing through a mount, and all of it once it is gone", async () => {
    const host = rootHost();
    const user = await provisioned(host);
    const mount = join(user.home, "a place");
    mkdirSync(mount);
    writeFileSync(join(host.stateDir, "precious"), "");
    system("mount", "--bind", host.stateDir, mount);
    const failure = await failureOf(deprovision(user, host)).finally(() => system("umount", mount));
    expect(failure).toMatchObject({ code: "home_has_mounts", message: expect.stringContaining(mount) });
    expect(existsSync(join(host.stateDir, "precious"))).toBe(true);
    await deprovision(user, host);
    isGone(user);
  });

  it("BM-02 removes what is left when somebody removed the account by hand", async () => {
    const host = rootHost();
    const user = await provisioned(host);
    system("userdel", user.username);
    expect(existsSync(user.home)).toBe(true);
    expect((await deprovision(user, host)).result.removed).toBe(true);
    isGone(user);
  });

  it(
    "BM-02 is completed by running it again after a crash before any step",
    () =>
      dieAtEveryPhase({
        async prepare() {
          const host = rootHost();
          return { host, user: await provisioned(host) };
        },
        complete: async ({ host, user }) => (await deprovision(user, host)).phases,
        die: ({ host, user: { username, allocation_id } }, phase) =>
          dieAtPhase(TYPE, { username, allocation_id }, host, phase),
        async recover({ host, user }, phase) {
          expect((await deprovision(user, host)).result.removed, phase).toBe(true);
          isGone(user);
          expect(recordsOf(host), phase).toEqual({});
        },
      }),
    EVERY_PHASE_MS,
  );
});

describe("an agent without root", () => {
  const account = userInfo().username;
  const host: Host = {
    stateDir: "/nowhere",
    profile: noEndpoints,
    capabilities: ["own_account"],
    account,
    terminals: noTerminals,
  };

  it("BM-02 gives its own account back without removing anything", async () => {
    const { result } = await runTask(TYPE, { username: account, allocation_id: randomUUID() }, { host });
    expect(result).toMatchObject({ username: account, removed: false, own_account: true, ended_processes: 0 });
  });

  it("BM-02 says that it cannot remove a user that is there, and has nothing to do for one that is not", async () => {
    const other = account === "daemon" ? "bin" : "daemon";
    const failure = await failureOf(runTask(TYPE, { username: other, allocation_id: randomUUID() }, { host }));
    expect(failure.code).toBe("own_account_only");
    const absent = { username: "hft-nobody-has-this", allocation_id: randomUUID() };
    expect((await runTask(TYPE, absent, { host })).result.removed).toBe(false);
  });
});
