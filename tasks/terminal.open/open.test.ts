// Whose shell it is to be. How it is opened is the agent's: node-agent/test.

import { randomUUID } from "node:crypto";
import { chmodSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { lacks } from "../../scripts/facilities.mjs";
import { passwd, recordsOf, rootHost, system, testUser } from "../../testkit/tasks/os-users.ts";
import { failureOf, noEndpoints, runTask } from "../../testkit/tasks/run-task.ts";
import type { Host, ShellUser, Terminals } from "../executor.ts";
import { writeRecord } from "../os-users/records.ts";

type Asked = Parameters<Terminals["open"]>[0];

/** Terminals that only find out for whom, and keep what they were asked. */
function whoOnly() {
  const asked: (Asked & { found: ShellUser })[] = [];
  const terminals: Terminals = {
    async open(wanted) {
      const found = await wanted.at();
      if (!("user" in found)) throw new Error("it is at no user");
      asked.push({ ...wanted, found: found.user });
      return { pid: 4242, offset: 0, private_directories: true, control_group: true };
    },
    recover: async () => undefined,
  };
  return { asked, terminals };
}

const params = (user: { username: string; allocation_id: string }) => ({
  ...{ username: user.username, allocation_id: user.allocation_id, session_id: randomUUID() },
  ...{ cols: 80, rows: 24, correlation_id: "c-1" },
});

describe.skipIf(lacks("root"))("terminal.open as root", () => {
  async function provisioned() {
    const { asked, terminals } = whoOnly();
    const host: Host = { ...rootHost(), terminals };
    const user = testUser();
    const { username, allocation_id } = user;
    await runTask("allocation.provision_user", { username, allocation_id }, { host });
    return { asked, host, user };
  }

  it("TERM-06 is for the user that was made for the allocation", async () => {
    const { asked, host, user } = await provisioned();
    const { result } = await runTask("terminal.open", { ...params(user), within_seconds: 9 }, { host });
    expect(result).toEqual({ pid: 4242, offset: 0, private_directories: true, control_group: true });
    const { uid, gid, home, shell } = passwd(user.username) ?? {};
    expect(asked[0]?.found).toMatchObject({ name: user.username, uid, gid, home, shell });
    expect(asked[0]).toMatchObject({ withinMs: 9_000, detachedMs: 600_000, correlationId: "c-1" });
  });

  it("TERM-06 is refused for another allocation, a missing user, one half made, one made again by others", async () => {
    const { asked, host, user } = await provisioned();
    const refused = async (wanted = user) => failureOf(runTask("terminal.open", params(wanted), { host }));
    const code = "terminal_pty_failed";
    expect(await refused({ ...user, allocation_id: randomUUID() })).toMatchObject({
      code,
      message: expect.stringContaining("not made for this allocation"),
    });
    expect(await refused({ ...user, username: "root" })).toMatchObject({ code });
    const record = recordsOf(host)[user.username] as Parameters<typeof writeRecord>[2];
    writeRecord(host.stateDir, user.username, { ...record, state: "removing" });
    expect(await refused()).toMatchObject({ code, message: expect.stringContaining("being made or removed") });
    writeRecord(host.stateDir, user.username, { ...record, uid: record.uid === 70_000 ? 70_001 : 70_000 });
    expect(await refused()).toMatchObject({ code, message: expect.stringContaining("has uid") });
    writeRecord(host.stateDir, user.username, record);
    system("userdel", "--force", user.username);
    expect(await refused()).toMatchObject({ code, message: expect.stringContaining("There is no user") });
    expect(asked).toEqual([]);
  });

  it("TERM-06 is refused while nobody can say whose a user is", async () => {
    const { host, user } = await provisioned();
    chmodSync(join(host.stateDir, "users.json"), 0o666);
    const failure = await failureOf(runTask("terminal.open", params(user), { host }));
    expect(failure).toMatchObject({ code: "terminal_pty_failed", message: expect.stringContaining("users.json") });
    writeFileSync(join(host.stateDir, "users.json"), "{", { mode: 0o600 });
    expect((await failureOf(runTask("terminal.open", params(user), { host }))).code).toBe("terminal_pty_failed");
  });
});

describe("terminal.open without root", () => {
  const account = userInfo().username;
  const ownAccount = (terminals: Terminals): Host => ({
    ...{ stateDir: "/nowhere", profile: noEndpoints, capabilities: ["own_account"], account, terminals },
  });

  it("TERM-06 is for the agent's own account", async () => {
    const { asked, terminals } = whoOnly();
    const wanted = params({ username: account, allocation_id: randomUUID() });
    await runTask("terminal.open", wanted, { host: ownAccount(terminals) });
    const { uid, gid, homedir } = userInfo();
    expect(asked[0]?.found).toMatchObject({ name: account, uid, gid, home: homedir });
  });

  it("TERM-06 is refused for any other", async () => {
    const { asked, terminals } = whoOnly();
    const wanted = params({ username: "somebody-else", allocation_id: randomUUID() });
    const failure = await failureOf(runTask("terminal.open", wanted, { host: ownAccount(terminals) }));
    expect(failure).toMatchObject({ code: "terminal_pty_failed", message: expect.stringContaining(account) });
    expect(asked).toEqual([]);
  });

  it.for([
    ["a session that is none", { session_id: "../../x" }],
    ["no columns", { cols: 0 }],
    ["more rows than there are", { rows: 501 }],
    ["a deadline of a minute", { within_seconds: 60 }],
    ["a correlation id with a line break", { correlation_id: "a\nb" }],
    ["an address", { url: "https://elsewhere" }],
  ] as const)("TASK-07 takes no parameters with %s", async ([, wrong]) => {
    const { terminals } = whoOnly();
    const wanted = { ...params({ username: account, allocation_id: randomUUID() }), ...wrong };
    await expect(runTask("terminal.open", wanted, { host: ownAccount(terminals) })).rejects.toThrow();
  });
});
