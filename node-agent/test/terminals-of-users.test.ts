// Terminals of tenants: real users, made by the task that makes them in the field. Needs root.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import type { Host, ShellUser } from "@holdfast/tasks/executor";
import { processesOf } from "@holdfast/tasks/os-users/processes";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { passwd, rootHost, type TestUser, testUser } from "../../testkit/tasks/os-users.ts";
import { runTask } from "../../testkit/tasks/run-task.ts";
import type { Launch } from "../src/drivers/pty/driver.ts";
import { commandOf } from "../src/drivers/pty/launch.ts";
import { ptyDriver } from "../src/drivers/pty/pty-driver.ts";
import { directoryOf, findSockets } from "../src/terminals/directory.ts";
import { ask, isRunning, type TerminalHost, terminalHost } from "./support/terminals.ts";

async function tenant(host = rootHost()): Promise<TestUser & { shellUser: ShellUser }> {
  const user = testUser();
  const { username, allocation_id } = user;
  await runTask("allocation.provision_user", { username, allocation_id }, { host });
  const account = passwd(username);
  if (!account) throw new Error("the user was not made");
  return { ...user, shellUser: { name: username, ...account } };
}

const deprovision = ({ username, allocation_id }: TestUser, host: Host) =>
  runTask("allocation.deprovision_user", { username, allocation_id }, { host });

function holderOf(host: TerminalHost, sessionId: string): number {
  const found = findSockets(host.stateDir).find((one) => one.kind === "shell" && one.sessionId === sessionId);
  return found?.kind === "shell" ? found.holder.pid : 0;
}

function statusOf(pid: number): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/status`, "utf8").split("\n");
  return Object.fromEntries(lines.map((line) => line.split(/:\s+/, 2) as [string, string]));
}

const as = (user: TestUser, command: string) =>
  spawnSync(
    "setpriv",
    ["--reuid", user.username, "--regid", user.username, "--init-groups", "sh", "-c", command],
    {
      encoding: "utf8",
      cwd: "/",
    },
  );

describe.skipIf(lacks("root"))("a tenant's terminal", () => {
  it("TERM-06 is the user's: identity, groups, home, locale and tty", async () => {
    const ada = await tenant();
    execFileSync("usermod", ["--append", "--groups", "games", ada.username]);
    const host = await terminalHost();
    const { stream, sessionId } = await host.open(ada.shellUser);
    await stream.attach();
    const { uid, gid } = ada.shellUser;
    expect(await ask(stream, "id -un; id -u; id -g; id -Gn; pwd")).toBe(
      [ada.username, uid, gid, `${ada.username} games`, ada.home].join("\n"),
    );
    expect(await ask(stream, "echo $HOME $USER $LOGNAME $SHELL; locale charmap")).toBe(
      `${ada.home} ${ada.username} ${ada.username} ${ada.shellUser.shell}\nUTF-8`,
    );
    const tty = await ask(stream, "tty");
    expect(statSync(tty)).toMatchObject({ uid });
    expect(statSync(tty).mode & 0o007).toBe(0);
    const status = statusOf(holderOf(host, sessionId));
    expect(status["Uid"]).toBe([uid, uid, uid, uid].join("\t"));
    expect(status["Gid"]).toBe([gid, gid, gid, gid].join("\t"));
    expect(status["CapPrm"]).toMatch(/^0+$/);
    expect(status["NoNewPrivs"]).toBe("0");
    expect(await ask(stream, "cat /etc/shadow 2>&1")).toContain("Permission denied");
  });

  it("TERM-06 its holder takes neither a debugger nor a way back to root", async () => {
    const ada = await tenant();
    const host = await terminalHost();
    const { stream, sessionId } = await host.open(ada.shellUser);
    await stream.attach();
    const holder = holderOf(host, sessionId);
    expect(as(ada, `kill -USR1 ${holder}`).status).toBe(0);
    expect(await ask(stream, "echo still here")).toBe("still here");
    const listens = execFileSync("cat", ["/proc/net/tcp"], { encoding: "utf8" });
    expect(listens).not.toContain(`:${(9229).toString(16).toUpperCase()} 00000000:0000 0A`);
    expect(as(ada, `cat /proc/${holder}/mem /proc/${holder}/environ; ls /proc/${holder}/fd`).status).not.toBe(0);
    expect(as(ada, `ls /proc/${holder}/fd`).stderr).toContain("Permission denied");
  });

  it("TERM-06 a tenant that kills its own holder ends its own terminal and no other", async () => {
    const [ada, bob] = [await tenant(), await tenant()];
    const host = await terminalHost();
    const hers = await host.open(ada.shellUser);
    const his = await host.open(bob.shellUser);
    await his.stream.attach();
    const [herHolder, hisHolder] = [holderOf(host, hers.sessionId), holderOf(host, his.sessionId)];
    expect(as(ada, `kill -9 ${hisHolder}`).stderr).toContain("not permitted");
    expect(as(ada, `kill -9 ${herHolder}`).status).toBe(0);
    expect(await hers.stream.frame("error")).toMatchObject({ code: "terminal_pty_failed" });
    expect(await ask(his.stream, "echo untouched")).toBe("untouched");
    await expect.poll(() => isRunning(hers.pid)).toBe(false);
    expect(host.terminals.count()).toBe(1);
  });

  it("TERM-06 a tenant reaches no holder's socket, not even its own", async () => {
    const [ada, bob] = [await tenant(), await tenant()];
    const host = await terminalHost();
    await host.open(ada.shellUser);
    await host.open(bob.shellUser);
    const directory = directoryOf(host.stateDir);
    // As if the state directory itself could be entered: each socket is root's alone.
    execFileSync("chmod", ["711", host.stateDir, directory]);
    for (const name of host.sockets("shell")) {
      const { uid, mode } = statSync(`${directory}/${name}`);
      expect({ uid, mode: mode & 0o777 }).toEqual({ uid: 0, mode: 0o600 });
      const connect = `cd ${directory} && exec ${process.execPath} -e 'require("net").connect("./${name}").on("error", (e) => { console.log(e.code); process.exit(1) }).on("connect", () => process.exit(0))'`;
      const tried = as(ada, connect);
      expect(tried.status).not.toBe(0);
      expect(`${tried.stdout}${tried.stderr}`).toMatch(/EACCES|Permission denied/);
    }
    expect(as(ada, `ls ${directory}`).stderr).toContain("Permission denied");
  });

  it("TERM-06 says that the user's home is missing or somebody else's, that no such user is, that its shell is gone", async () => {
    const ada = await tenant();
    const host = await terminalHost();
    const refused = async (user: Partial<ShellUser>) =>
      host.open({ ...ada.shellUser, ...user }).then(
        () => "it was opened",
        (error: Error) => error.message,
      );
    expect(await refused({ home: "/root" })).toMatch(/home \/root .* cannot be entered: EACCES/);
    expect(await refused({ home: "/tmp" })).toMatch(/home \/tmp does not belong to/);
    expect(await refused({ shell: "/usr/bin/no-shell" })).toMatch(/shell .* cannot be run: ENOENT/);
    expect(await refused({ shell: "/usr/sbin/nologin" })).toMatch(/not meant for people/);
    expect(await refused({ name: "nobody-of-this-name" })).toMatch(/nobody-of-this-name/);
    rmSync(ada.home, { recursive: true });
    expect(await refused({})).toMatch(/home .* cannot be entered: ENOENT/);
    await expect.poll(() => host.sockets("shell")).toEqual([]);
    expect(host.failures.every(({ code }) => code === "terminal_pty_failed")).toBe(true);
  });

  it("TERM-06 says that the host gives no PTY", async () => {
    const ada = await tenant();
    // In a mount namespace of its own, where there is no device to ask for one.
    const launch: Launch = ({ directory, ...holder }) => {
      const hidden = `mount --bind /dev/null /dev/ptmx && exec "$@"`;
      const command = ["unshare", "--mount", "sh", "-c", hidden, "sh", ...commandOf(holder)];
      execFileSync("sh", ["-c", `setsid "$@" < /dev/null > /dev/null 2>&1 &`, "sh", ...command], {
        cwd: directory,
      });
      return { onFailure() {} };
    };
    const host = await terminalHost({ driver: { ...ptyDriver(), launch } });
    const message = await host.open(ada.shellUser).then(
      () => "it was opened",
      (error: Error) => error.message,
    );
    expect(message).toMatch(/^This host gives no PTY/);
    await expect.poll(() => host.sockets("shell")).toEqual([]);
    await host.restart({ driver: ptyDriver() });
    const { stream } = await host.open(ada.shellUser);
    await stream.attach();
    expect(await ask(stream, "id -un")).toBe(ada.username);
  });

  it("TERM-06 has a /tmp, /var/tmp and /dev/shm of its allocation's own, which go with it", async () => {
    const users = rootHost();
    const [ada, bob] = [await tenant(users), await tenant()];
    const host = await terminalHost();
    const [first, second, his] = [
      await host.open(ada.shellUser),
      await host.open(ada.shellUser),
      await host.open(bob.shellUser),
    ];
    for (const { stream } of [first, second, his]) await stream.attach();
    expect(first.private_directories).toBe(true);
    const mark = `mark-${ada.username}`;
    for (const place of ["/tmp", "/var/tmp", "/dev/shm"]) {
      expect(await ask(first.stream, `echo ${place} > ${place}/${mark}; stat -c %a ${place}`)).toBe("1777");
      expect(await ask(second.stream, `cat ${place}/${mark}`)).toBe(place);
      expect(await ask(his.stream, `cat ${place}/${mark} 2>&1`)).toContain("No such file");
      expect(existsSync(`${place}/${mark}`), "the host's own").toBe(false);
    }
    const { uid } = ada.shellUser;
    const kept = [`/var/lib/holdfast-tenants/${uid}`, `/dev/shm/holdfast-tenants/${uid}`];
    for (const path of kept) expect(as(bob, `ls ${path}`).stderr).toContain("Permission denied");
    await deprovision(ada, users);
    for (const path of kept) expect(existsSync(path), path).toBe(false);
    expect(await ask(his.stream, "echo untouched")).toBe("untouched");
  });

  it("TERM-06 opens on a host that gives no mount namespace, says so, and what it leaves is removed", async () => {
    const users = rootHost();
    const ada = await tenant(users);
    const launch: Launch = ({ directory, ...holder }) => {
      const [file = "", ...args] = commandOf(holder);
      spawn(file, args, { cwd: directory, detached: true, stdio: "ignore" }).unref();
      return { onFailure() {} };
    };
    const host = await terminalHost({ driver: { ...ptyDriver(), launch } });
    const { stream, private_directories } = await host.open(ada.shellUser);
    await stream.attach();
    expect(private_directories).toBe(false);
    const mark = `/tmp/mark-${ada.username}`;
    await ask(stream, `echo mine > ${mark}`);
    expect(existsSync(mark)).toBe(true);
    await deprovision(ada, users);
    expect(existsSync(mark)).toBe(false);
  });

  it("TERM-06 cannot take the host down with a fork bomb, with its memory or with open files", async () => {
    const users = rootHost();
    const [ada, bob] = [await tenant(users), await tenant()];
    const limits = { processes: 60, memoryBytes: 128 * 1024 * 1024, openFiles: 512 };
    const host = await terminalHost({ driver: ptyDriver(limits) });
    const [hers, his] = [await host.open(ada.shellUser), await host.open(bob.shellUser)];
    for (const { stream } of [hers, his]) await stream.attach();
    expect(await ask(hers.stream, "ulimit -u; ulimit -Hu; ulimit -c; ulimit -Hc; ulimit -Hn")).toBe(
      "60\n60\n0\n0\n512",
    );
    expect(await ask(hers.stream, "ulimit -u 100 2>&1")).toContain("cannot modify limit");
    if (hers.control_group) {
      const eats = "head -c 400M /dev/zero | tail -n 1 > /dev/null; echo $?";
      expect(await ask(hers.stream, eats), "killed for want of memory").toMatch(/137$/);
    }
    hers.stream.type("bomb() { bomb | bomb & }; bomb 2> /dev/null\r");
    await expect.poll(() => processesOf(ada.shellUser.uid).length).toBeGreaterThan(40);
    expect(await ask(his.stream, "echo $(seq 3 | wc -l)"), "another tenant goes on").toBe("3");
    expect(processesOf(ada.shellUser.uid).length).toBeLessThanOrEqual(limits.processes);
    await deprovision(ada, users);
    expect(processesOf(ada.shellUser.uid)).toEqual([]);
  });

  it("BM-02 ends with the user: deprovisioning finds the holder among the user's processes", async () => {
    const users = rootHost();
    const { username, allocation_id } = testUser();
    await runTask("allocation.provision_user", { username, allocation_id }, { host: users });
    const host = await terminalHost();
    const { pid, sessionId } = await host.open({ name: username, ...passwd(username) } as ShellUser);
    const holder = holderOf(host, sessionId);
    await runTask("allocation.deprovision_user", { username, allocation_id }, { host: users });
    expect(isRunning(pid) || isRunning(holder)).toBe(false);
    await expect.poll(() => host.terminals.count()).toBe(0);
    await expect.poll(() => host.sockets("shell")).toEqual([]);
  });
});
