// Real users of this machine, made by root: each test has its own, and leaves none.

import { randomUUID } from "node:crypto";
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
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

const TYPE = "allocation.provision_user";
// Each phase takes some processes of its own, which may be slow to start on a busy machine.
const EVERY_PHASE_MS = 300_000;
const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtleW9mYXRlc3R1c2VydGhhdG9wZW5zbm90aGluZyEh first@test";
const OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFub3RoZXJrZXlvZmF0ZXN0dXNlcnRoYXRvcGVuc24h";

function paramsOf({ username, allocation_id }: TestUser, ssh_keys: string[] = []) {
  return { username, allocation_id, ssh_keys };
}

function provision(user: TestUser, host: Host, ssh_keys: string[] = []) {
  return runTask(TYPE, paramsOf(user, ssh_keys), { host });
}

/** A host and a user of its own for each crash. */
const newPlace = {
  prepare: () => ({ host: rootHost(), user: testUser() }),
  complete: async ({ host, user }: { host: Host; user: TestUser }) => (await provision(user, host)).phases,
  die: ({ host, user }: { host: Host; user: TestUser }, phase: string) =>
    dieAtPhase(TYPE, paramsOf(user, [KEY]), host, phase),
};

function keysIn(user: TestUser): string {
  return readFileSync(join(user.home, ".ssh/authorized_keys"), "utf8");
}

function ownership(path: string): string {
  const { uid, gid, mode } = lstatSync(path);
  return `${uid}:${gid} ${(mode & 0o7777).toString(8)}`;
}

describe.skipIf(lacks("root"))("an agent with root", () => {
  it("BM-01 makes the user, its home and its keys", async () => {
    const [host, user] = [rootHost(), testUser()];
    const { result, phases } = await provision(user, host, [KEY, OTHER_KEY]);
    const account = passwd(user.username);
    expect(result).toEqual({
      ...{ username: user.username, uid: account?.uid, gid: account?.gid, home: user.home, shell: "/bin/bash" },
      ...{ created: true, own_account: false, keys: 2 },
    });
    const uid = Number(account?.uid);
    expect(uid).toBeGreaterThanOrEqual(70_000);
    expect(uid).toBeLessThanOrEqual(79_999);
    expect(keysIn(user)).toBe(`${KEY}\n${OTHER_KEY}\n`);
    expect(ownership(user.home)).toBe(`${uid}:${uid} 700`);
    expect(ownership(join(user.home, ".ssh"))).toBe(`${uid}:${uid} 700`);
    expect(ownership(join(user.home, ".ssh/authorized_keys"))).toBe(`${uid}:${uid} 600`);
    expect(system("getent", "shadow", user.username).split(":")[1], "no password opens it").toBe("!");
    expect(readFileSync("/etc/subuid", "utf8"), "no further uids").not.toContain(user.username);
    expect(recordsOf(host)[user.username]).toEqual({ allocation_id: user.allocation_id, uid, state: "made" });
    expect(ownership(join(host.stateDir, "users.json"))).toBe("0:0 600");
    expect(phases).toContain("creating_account");
  });

  it("BM-01 gives nobody a name that is power over the host, and leaves no trace of the attempt", async () => {
    const [host, user] = [rootHost(), testUser("systemd-")];
    const failure = await failureOf(provision(user, host));
    expect(failure).toMatchObject({ code: "name_reserved", message: expect.stringContaining(user.username) });
    expect(passwd(user.username)).toBeUndefined();
    expect(hasGroup(user.username)).toBe(false);
    expect(existsSync(join(host.stateDir, "users.json"))).toBe(false);
  });

  it("BM-01 gives the same answer again, with the keys replaced", async () => {
    const [host, user] = [rootHost(), testUser()];
    const first = await provision(user, host, [KEY]);
    const again = await provision(user, host, [OTHER_KEY]);
    expect(again.result).toEqual({ ...first.result, created: false });
    expect(keysIn(user)).toBe(`${OTHER_KEY}\n`);
    await provision(user, host, []);
    expect(keysIn(user), "revoked").toBe("");
  });

  it("BM-01 gives no uid twice in a row, also when the first user is gone", async () => {
    const [host, first, second] = [rootHost(), testUser(), testUser()];
    const { result } = await provision(first, host);
    await runTask(
      "allocation.deprovision_user",
      { username: first.username, allocation_id: first.allocation_id },
      { host },
    );
    const next = await provision(second, host);
    expect(next.result.uid).not.toBe(result.uid);
  });

  it("BM-01 gives users that are made side by side different uids", async () => {
    const host = rootHost();
    const users = [testUser(), testUser(), testUser(), testUser()];
    const made = await Promise.all(users.map((user) => provision(user, host)));
    expect(new Set(made.map(({ result }) => result.uid)).size).toBe(users.length);
    expect(Object.keys(recordsOf(host)).sort()).toEqual(users.map(({ username }) => username).sort());
  });

  it.for(["daemon", "root", "nogroup", "constructor"])(
    "BM-01 looks at the name %s without being misled",
    async (username) => {
      const host = rootHost();
      const before = passwd(username);
      if (username === "constructor") {
        atEnd(() => passwd(username) && system("userdel", username));
        const user = { username, allocation_id: randomUUID(), home: `/home/${username}` };
        expect((await provision(user, host)).result.created).toBe(true);
        const removed = await runTask(
          "allocation.deprovision_user",
          { username, allocation_id: user.allocation_id },
          { host },
        );
        expect(removed.result.removed).toBe(true);
      } else {
        const failure = await failureOf(runTask(TYPE, { username, allocation_id: randomUUID() }, { host }));
        expect(failure.code).toBe("user_not_ours");
        expect(existsSync(join(host.stateDir, "users.json")), "nothing was recorded").toBe(false);
      }
      expect(passwd(username)).toEqual(before);
    },
  );

  it("BM-01 refuses a user that somebody made by hand, and leaves it as it is", async () => {
    const [host, user] = [rootHost(), testUser()];
    system("useradd", "--create-home", user.username);
    expect((await failureOf(provision(user, host, [KEY]))).code).toBe("user_not_ours");
    expect(existsSync(join(user.home, ".ssh"))).toBe(false);
  });

  it("BM-01 refuses a user that was replaced by hand under the same name", async () => {
    const [host, user] = [rootHost(), testUser()];
    await provision(user, host);
    system("userdel", "--remove", user.username);
    system("useradd", "--create-home", user.username);
    expect((await failureOf(provision(user, host, [KEY]))).code).toBe("user_not_ours");
    expect(existsSync(join(user.home, ".ssh"))).toBe(false);
  });

  it("BM-01 refuses another allocation's user", async () => {
    const [host, user] = [rootHost(), testUser()];
    await provision(user, host, [KEY]);
    const failure = await failureOf(provision({ ...user, allocation_id: randomUUID() }, host, [OTHER_KEY]));
    expect(failure.code).toBe("user_taken");
    expect(failure.message).toContain(user.allocation_id);
    expect(keysIn(user)).toBe(`${KEY}\n`);
  });

  it("BM-01 refuses a home that is there and somebody else's", async () => {
    const [host, user] = [rootHost(), testUser()];
    mkdirSync(user.home);
    chownSync(user.home, 1, 1);
    writeFileSync(join(user.home, "precious"), "");
    expect((await failureOf(provision(user, host))).code).toBe("home_not_ours");
    expect(existsSync(join(user.home, "precious"))).toBe(true);
    expect(passwd(user.username)).toBeUndefined();
  });

  it("BM-01 refuses a home that is a link", async () => {
    const [host, user] = [rootHost(), testUser()];
    symlinkSync("/root", user.home);
    expect((await failureOf(provision(user, host, [KEY]))).code).toBe("home_not_ours");
    expect(lstatSync(user.home).isSymbolicLink()).toBe(true);
  });

  it("BM-01 does not go through a link that the tenant put in place of .ssh", async () => {
    const [host, user] = [rootHost(), testUser()];
    await provision(user, host, [KEY]);
    const target = join(host.stateDir, "elsewhere");
    mkdirSync(target);
    rmSync(join(user.home, ".ssh"), { recursive: true });
    symlinkSync(target, join(user.home, ".ssh"));
    expect((await failureOf(provision(user, host, [OTHER_KEY]))).code).toBe("home_unsafe");
    expect(ownership(target)).toBe("0:0 755");
    expect(existsSync(join(target, "authorized_keys"))).toBe(false);
    expect(passwd(user.username), "a user that was made stays").toBeDefined();
  });

  it("BM-01 replaces a link in place of authorized_keys, and not what it points to", async () => {
    const [host, user] = [rootHost(), testUser()];
    await provision(user, host, [KEY]);
    const target = join(host.stateDir, "passwd");
    writeFileSync(target, "root:x:0:0");
    rmSync(join(user.home, ".ssh/authorized_keys"));
    symlinkSync(target, join(user.home, ".ssh/authorized_keys"));
    await provision(user, host, [OTHER_KEY]);
    expect(readFileSync(target, "utf8")).toBe("root:x:0:0");
    expect(ownership(target)).toBe("0:0 644");
    expect(lstatSync(join(user.home, ".ssh/authorized_keys")).isFile()).toBe(true);
    expect(keysIn(user)).toBe(`${OTHER_KEY}\n`);
  });

  it("BM-01 does not follow a directory in place of authorized_keys, and leaves no draft", async () => {
    const [host, user] = [rootHost(), testUser()];
    await provision(user, host);
    rmSync(join(user.home, ".ssh/authorized_keys"));
    mkdirSync(join(user.home, ".ssh/authorized_keys"));
    expect((await failureOf(provision(user, host, [KEY]))).code).toBe("home_unsafe");
    expect(system("ls", "-A", join(user.home, ".ssh")).trim()).toBe("authorized_keys");
  });

  it("BM-01 makes nothing while its record cannot be written", async () => {
    const [host, user] = [rootHost(), testUser()];
    system("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", host.stateDir);
    atEnd(() => system("umount", host.stateDir));
    const failure = await failureOf(provision(user, host));
    expect(failure.code).toBe("users_record_unusable");
    expect(failure.message).toContain(join(host.stateDir, "users.json"));
    expect(passwd(user.username)).toBeUndefined();
    expect(hasGroup(user.username)).toBe(false);
  });

  it.for([
    ["is not JSON", "{", 0o600, 0],
    ["has another form", '{"users": []}', 0o600, 0],
    ["others can write", '{"next_uid": 70000, "users": {}}', 0o666, 0],
    ["others own", '{"next_uid": 70000, "users": {}}', 0o600, 1],
  ] as const)("BM-01 trusts no record that %s", async ([, content, mode, uid]) => {
    const [host, user] = [rootHost(), testUser()];
    const path = join(host.stateDir, "users.json");
    writeFileSync(path, content);
    system("chmod", mode.toString(8), path);
    chownSync(path, uid, 0);
    expect((await failureOf(provision(user, host))).code).toBe("users_record_unusable");
    expect(passwd(user.username)).toBeUndefined();
  });

  it(
    "BM-01 takes back what it began when it is cancelled, at every phase",
    async () => {
      const probe = testUser();
      const { phases } = await provision(probe, rootHost());
      for (const phase of phases) {
        const [host, user] = [rootHost(), testUser()];
        const cancel = new AbortController();
        const onPhase = (entered: string) => entered === phase && cancel.abort();
        const run = runTask(TYPE, paramsOf(user, [KEY]), { host, onPhase, signal: cancel.signal });
        // The last phase has nothing after it to stop at.
        if (phase === phases.at(-1)) {
          await run;
          continue;
        }
        await expect(run, phase).rejects.toThrow("aborted");
        expect(passwd(user.username), phase).toBeUndefined();
        expect(hasGroup(user.username), phase).toBe(false);
        expect(existsSync(user.home), phase).toBe(false);
        const recorded = existsSync(join(host.stateDir, "users.json")) ? recordsOf(host) : {};
        expect(recorded, phase).toEqual({});
      }
    },
    EVERY_PHASE_MS,
  );

  it(
    "BM-01 is repaired by running it again after a crash before any step",
    () =>
      dieAtEveryPhase({
        ...newPlace,
        async recover({ host, user }, phase) {
          const { result } = await provision(user, host, [KEY]);
          expect(result, phase).toMatchObject({ username: user.username, created: true, keys: 1 });
          expect(passwd(user.username)?.uid, phase).toBe(result.uid);
          expect(keysIn(user), phase).toBe(`${KEY}\n`);
          expect(recordsOf(host)[user.username], phase).toMatchObject({ uid: result.uid, state: "made" });
        },
      }),
    EVERY_PHASE_MS,
  );

  it(
    "BM-01 is released completely after a crash before any step",
    () =>
      dieAtEveryPhase({
        ...newPlace,
        async recover({ host, user }, phase) {
          const { username, allocation_id } = user;
          await runTask("allocation.deprovision_user", { username, allocation_id }, { host });
          expect(passwd(username), phase).toBeUndefined();
          expect(hasGroup(username), phase).toBe(false);
          expect(existsSync(user.home), phase).toBe(false);
        },
      }),
    EVERY_PHASE_MS,
  );

  it("BM-01 makes a half-made home and a half-made .ssh anew", async () => {
    const [host, user] = [rootHost(), testUser()];
    await dieAtPhase(TYPE, paramsOf(user), host, "creating_home");
    mkdirSync(`/home/.${user.username}.holdfast/half`, { recursive: true });
    await dieAtPhase(TYPE, paramsOf(user), host, "writing_keys");
    expect(existsSync(`/home/.${user.username}.holdfast`)).toBe(false);
    rmSync(join(user.home, ".ssh"), { recursive: true });
    mkdirSync(join(user.home, ".ssh"), { mode: 0o755 });
    const { result } = await provision(user, host, [KEY]);
    expect(existsSync(join(user.home, "half"))).toBe(false);
    expect(ownership(join(user.home, ".ssh"))).toBe(`${result.uid}:${result.gid} 700`);
  });

  it("BM-01 takes another uid when the recorded one was given away before anything was made", async () => {
    const [host, user, other] = [rootHost(), testUser(), testUser()];
    await dieAtPhase(TYPE, paramsOf(user), host, "creating_group");
    const recorded = recordsOf(host)[user.username]?.uid;
    system("useradd", "--uid", String(recorded), other.username);
    const { result } = await provision(user, host);
    expect(result.uid).not.toBe(recorded);
  });

  it("BM-01 makes the user anew after a release that was cut short", async () => {
    const [host, user] = [rootHost(), testUser()];
    const { username, allocation_id } = user;
    await provision(user, host, [KEY]);
    await dieAtPhase("allocation.deprovision_user", { username, allocation_id }, host, "removing_home");
    const { result } = await provision(user, host, [KEY]);
    expect(result).toMatchObject({ created: true, shell: "/bin/bash" });
    expect(system("getent", "shadow", username).split(":")[7], "not expired").toBe("");
  });
});

describe("an agent without root", () => {
  const { username: account, uid, gid, homedir, shell } = userInfo();
  const host: Host = {
    stateDir: "/nowhere",
    profile: noEndpoints,
    capabilities: ["own_account"],
    account,
    terminals: noTerminals,
  };
  const allocation_id = randomUUID();

  it("BM-01 offers its own account, and makes nothing", async () => {
    const { result } = await runTask(TYPE, { username: account, allocation_id }, { host });
    expect(result).toEqual({
      ...{ username: account, uid, gid, home: homedir, shell },
      ...{ created: false, own_account: true, keys: 0 },
    });
  });

  it("BM-01 refuses any other name, and says which one it has", async () => {
    const failure = await failureOf(runTask(TYPE, { username: "somebody", allocation_id }, { host }));
    expect(failure).toMatchObject({ code: "own_account_only", message: expect.stringContaining(account) });
  });

  it("BM-01 does not touch the keys of its own account", async () => {
    const failure = await failureOf(
      runTask(TYPE, { username: account, allocation_id, ssh_keys: [KEY] }, { host }),
    );
    expect(failure.code).toBe("keys_not_supported");
  });
});
