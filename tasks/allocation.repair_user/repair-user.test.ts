// Real users of this machine, deleted and damaged as an operator does it, and repaired.

import { randomUUID } from "node:crypto";
import { chownSync, existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
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

const TYPE = "allocation.repair_user";
const EVERY_PHASE_MS = 300_000;
const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtleW9mYXRlc3R1c2VydGhhdG9wZW5zbm90aGluZyEh first@test";
const OWN_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFub3RoZXJrZXlvZmF0ZXN0dXNlcnRoYXRvcGVuc24h";

const paramsOf = ({ username, allocation_id }: TestUser) => ({ username, allocation_id, ssh_keys: [KEY] });
const repair = (user: TestUser, host: Host) => runTask(TYPE, paramsOf(user), { host });
const keysOf = ({ home }: TestUser) => join(home, ".ssh/authorized_keys");

/** Lines of these names in /etc/passwd and /etc/group; other tests add users of their own meanwhile. */
function accountsOf(...users: TestUser[]): string[] {
  return ["/etc/passwd", "/etc/group"].flatMap((path) =>
    readFileSync(path, "utf8")
      .split("\n")
      .filter((line) => users.some(({ username }) => line.startsWith(`${username}:`))),
  );
}

/** Every path of the home with owner, mode, time of change and content. */
function homeAsItIs({ home }: TestUser): string {
  return (
    system("find", home, "-printf", "%P %U:%G %m %T@ %y\n") + readFileSync(keysOf({ home } as TestUser), "utf8")
  );
}

async function provisioned(): Promise<{ host: Host; user: TestUser; uid: number }> {
  const [host, user] = [rootHost(), testUser()];
  const { result } = await runTask("allocation.provision_user", paramsOf(user), { host });
  const uid = Number(result.uid);
  writeFileSync(join(user.home, "thesis"), "twelve years of work");
  chownSync(join(user.home, "thesis"), uid, uid);
  // A key the tenant added.
  writeFileSync(keysOf(user), `${KEY}\n${OWN_KEY}\n`);
  return { host, user, uid };
}

describe.skipIf(lacks("root"))("an agent with root", () => {
  it("BM-01 restores a deleted user with its uid, and changes nothing in its home", async () => {
    const { host, user, uid } = await provisioned();
    const [account, home] = [passwd(user.username), homeAsItIs(user)];
    system("userdel", user.username);
    const { result } = await repair(user, host);
    expect(result).toEqual({
      ...{ username: user.username, uid, gid: uid, home: user.home, shell: "/bin/bash" },
      ...{ restored: ["group", "account"], own_account: false, keys: 0 },
    });
    expect(passwd(user.username)).toEqual(account);
    expect(homeAsItIs(user)).toBe(home);
    expect(system("getent", "shadow", user.username).split(":")[1], "no password opens it").toBe("!");
    expect(readFileSync("/etc/subuid", "utf8"), "no further uids").not.toContain(user.username);
    expect((await repair(user, host)).result.restored, "run again").toEqual([]);
  });

  it("BM-01 finds nothing to repair in a complete user, and changes nothing", async () => {
    const { host, user } = await provisioned();
    const [home, accounts, records] = [homeAsItIs(user), accountsOf(user), recordsOf(host)];
    const { result } = await repair(user, host);
    expect(result).toMatchObject({ restored: [], keys: 0 });
    expect(homeAsItIs(user)).toBe(home);
    expect(accountsOf(user)).toEqual(accounts);
    expect(recordsOf(host)).toEqual(records);
  });

  it("BM-01 creates a missing home with the allocation's keys, for the same uid", async () => {
    const { host, user, uid } = await provisioned();
    system("userdel", "--remove", user.username);
    const { result } = await repair(user, host);
    expect(result).toMatchObject({ uid, restored: ["group", "account", "home"], keys: 1 });
    expect(readFileSync(keysOf(user), "utf8")).toBe(`${KEY}\n`);
    expect(lstatSync(user.home)).toMatchObject({ uid, gid: uid });
  });

  it("BM-01 restores a shell that is gone and a primary group that was changed and removed", async () => {
    const { host, user, uid } = await provisioned();
    const home = homeAsItIs(user);
    system("usermod", "--shell", "/opt/removed/zsh", "--gid", "nogroup", user.username);
    system("groupdel", user.username);
    // usermod gives the home directory to the new group too.
    chownSync(user.home, uid, uid);
    const { result } = await repair(user, host);
    expect(result).toMatchObject({ restored: ["group", "primary_group", "shell"], shell: "/bin/bash", gid: uid });
    expect(homeAsItIs(user).replace(/ [\d.]+ d$/gm, "")).toBe(home.replace(/ [\d.]+ d$/gm, ""));
  });

  it("BM-01 keeps a shell that refuses sessions", async () => {
    const { host, user } = await provisioned();
    system("usermod", "--shell", "/usr/sbin/nologin", user.username);
    expect((await repair(user, host)).result).toMatchObject({ restored: [], shell: "/usr/sbin/nologin" });
  });

  it("BM-01 takes over no name, uid, gid or home of somebody else", async () => {
    const { host, user, uid } = await provisioned();
    const other = testUser();
    const refused = async (code: string, message: string) => {
      const before = accountsOf(user, other);
      const failure = await failureOf(repair(user, host));
      expect(failure).toMatchObject({ code, message: expect.stringContaining(message) });
      expect(accountsOf(user, other)).toEqual(before);
    };
    system("usermod", "--home", "/srv/elsewhere", user.username);
    await refused("home_not_ours", "/srv/elsewhere");
    system("userdel", user.username);

    system("useradd", "--no-create-home", "--uid", "61234", user.username);
    await refused("user_not_ours", "61234");
    system("userdel", user.username);

    system("groupadd", "--gid", "61234", user.username);
    await refused("user_not_ours", "61234");
    system("groupdel", user.username);

    system("useradd", "--no-create-home", "--uid", String(uid), "--gid", "nogroup", other.username);
    await refused("uid_taken", other.username);
    system("userdel", other.username);

    system("groupadd", "--gid", String(uid), other.username);
    await refused("uid_taken", other.username);
    system("groupdel", other.username);

    chownSync(user.home, 1, 1);
    await refused("home_not_ours", "uid 1");
    chownSync(user.home, uid, uid);

    expect((await repair(user, host)).result.restored).toEqual(["group", "account"]);
    expect(readFileSync(join(user.home, "thesis"), "utf8")).toBe("twelve years of work");

    system("userdel", "--remove", user.username);
    symlinkSync(host.stateDir, user.home);
    await refused("home_not_ours", "is not a directory");
  });

  it("BM-01 restores nothing without a record of this allocation", async () => {
    const { host, user } = await provisioned();
    const foreign = { ...user, allocation_id: randomUUID() };
    expect(await failureOf(repair(foreign, host))).toMatchObject({
      code: "user_taken",
      message: expect.stringContaining(user.allocation_id),
    });
    expect((await failureOf(repair(user, rootHost()))).code).toBe("user_not_ours");
    system("userdel", user.username);
    expect((await failureOf(repair(user, rootHost()))).code).toBe("user_not_recorded");
    expect(passwd(user.username)).toBeUndefined();
  });

  it("BM-01 does not undo a release that was cut short", async () => {
    const { host, user } = await provisioned();
    const { username, allocation_id } = user;
    await dieAtPhase("allocation.deprovision_user", { username, allocation_id }, host, "removing_home");
    expect((await failureOf(repair(user, host))).code).toBe("user_unfinished");
  });

  it(
    "BM-01 completes a repair after a crash before any step",
    () =>
      dieAtEveryPhase({
        prepare: provisioned,
        complete: async ({ user, host }) => (await repair(user, host)).phases,
        die({ host, user }, phase) {
          system("userdel", "--remove", user.username);
          return dieAtPhase(TYPE, paramsOf(user), host, phase);
        },
        async recover({ host, user, uid }, phase) {
          mkdirSync(`/home/.${user.username}.holdfast/half`, { recursive: true });
          await repair(user, host);
          expect(passwd(user.username), phase).toMatchObject({ uid, gid: uid, home: user.home });
          expect(readFileSync(keysOf(user), "utf8"), phase).toBe(`${KEY}\n`);
          expect(existsSync(join(user.home, "half")), phase).toBe(false);
        },
      }),
    EVERY_PHASE_MS,
  );

  it("BM-01 leaves a repaired user to be released completely", async () => {
    const { host, user } = await provisioned();
    const { username, allocation_id } = user;
    system("userdel", username);
    await repair(user, host);
    await runTask("allocation.deprovision_user", { username, allocation_id }, { host });
    expect(passwd(username)).toBeUndefined();
    expect(hasGroup(username)).toBe(false);
    expect(existsSync(user.home)).toBe(false);
    expect(recordsOf(host)).toEqual({});
  });
});

describe("an agent without root", () => {
  const { username: account, uid, gid, homedir: home, shell } = userInfo();
  const own = { stateDir: "/nowhere", capabilities: ["own_account"], account };
  const host: Host = { ...own, profile: noEndpoints, terminals: noTerminals } as Host;
  const allocation_id = randomUUID();

  it("BM-01 restores nothing of its own account, and refuses any other", async () => {
    const { result } = await runTask(TYPE, { username: account, allocation_id }, { host });
    expect(result).toEqual({ username: account, uid, gid, home, shell, restored: [], own_account: true, keys: 0 });
    const failure = await failureOf(runTask(TYPE, { username: "somebody", allocation_id }, { host }));
    expect(failure).toMatchObject({ code: "own_account_only", message: expect.stringContaining("somebody") });
  });
});
