// The driver of bubblewrap keeps the contract of sandboxes, with every limit that this host can enforce, and leaves nothing behind
// whenever its agent is killed. Everything is counted on the host.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { enforcedLimits } from "@holdfast/contracts/execution/limits";
import { uuidv7 } from "@holdfast/kit/uuid";
import { describe, expect, it } from "vitest";
import { lacks } from "../../../../scripts/facilities.mjs";
import { atEnd } from "../../../../testkit/lifetime/at-end.ts";
import { bubblewrapDriver, runPoints } from "../../../src/drivers/sandbox/bubblewrap/bubblewrap.ts";
import { hierarchiesOfHost } from "../../../src/drivers/sandbox/cgroups/hierarchies.ts";
import { runTag } from "../../../src/drivers/sandbox/driver.ts";
import { type Bench, ended, run, running, start, uniqueSleep, until } from "./bench.ts";
import { contractOf } from "./contract.ts";

const program = fileURLToPath(new URL("../../support/sandbox-process.ts", import.meta.url));

const cgroupsOnHost = (owner: string) =>
  hierarchiesOfHost().flatMap(({ parent }) => readdirSync(parent).filter((name) => name.includes(owner)));

function bubblewrapBench(owner = uuidv7()): Bench {
  return {
    ...{ driver: bubblewrapDriver({ owner }), withinMs: 60_000 },
    leftovers: () => cgroupsOnHost(owner),
  };
}

const needsHost = lacks("root") || lacks("bubblewrap");

describe.skipIf(needsHost)("the sandbox driver of bubblewrap", () => {
  it.for(contractOf({ isolation: true, limits: enforcedLimits }))("SBX-01 $name", ({ check }) =>
    expect(check(bubblewrapBench())).resolves.toBeUndefined(),
  );

  it("SBX-01 runs scripts as a user of the host that owns nothing, and another in each run", async () => {
    const bench = bubblewrapBench();
    const users = async () => {
      const sleep = uniqueSleep();
      const { handle } = start(bench, { script: `id -un; ${sleep}` });
      await until(bench, () => running(sleep).length === 1, "the script");
      const status = readFileSync(`/proc/${running(sleep)[0]}/status`, "utf8");
      handle.kill();
      await ended(bench, handle);
      return [...status.matchAll(/^(?:Uid|Gid|Groups):\s*(\S*)/gm)].map(([, first]) => Number(first));
    };
    const [one = [], other = []] = [await users(), await users()];
    expect(Math.min(...one.slice(0, 2), ...other.slice(0, 2))).toBeGreaterThan(1_000_000_000);
    expect(one[0]).not.toBe(other[0]);
  });

  it("SBX-01 denies system calls by a filter, and leaves a shell usable", async () => {
    const script =
      "unshare -U true 2>&1 | tail -1; unshare -m true 2>/dev/null || echo no mounts; (echo a | cat; true) && whoami; git --version >/dev/null 2>&1; echo done";
    const { stdout } = await run(bubblewrapBench(), { script });
    expect(stdout).toMatch(/unshare.*: Operation not permitted\nno mounts\na\nsandbox\ndone\n$/);
  });

  it("SBX-01 has the network only where the order allows it", async () => {
    const script = "tail -n +3 /proc/net/dev | wc -l";
    const interfaces = async (network: boolean) =>
      Number((await run(bubblewrapBench(), { script, network })).stdout);
    expect(await interfaces(false)).toBe(1);
    expect(await interfaces(true)).toBe(readFileSync("/proc/net/dev", "utf8").trim().split("\n").length - 2);
  });

  it("SBX-03 shows a script none of the agent's files and no home", async () => {
    const script = `ls /root /home /var /etc/shadow ${program} 2>/dev/null; ls /`;
    const names = (await run(bubblewrapBench(), { script })).stdout.trim().split("\n");
    expect(names.filter((name) => !/^(bin|sbin|lib\w*)$/.test(name))).toEqual([
      ...["dev", "etc", "proc", "tmp", "usr", "work"],
    ]);
  });

  it("SBX-02 says what is missing on a host without cgroups or bubblewrap", async () => {
    const owner = uuidv7();
    const bare = await bubblewrapDriver({ owner, program: "/nonexistent/bwrap", hierarchies: [] }).check();
    expect(bare.problem?.what).toMatch(/bubblewrap/);
    expect(bare.limits.memory).toMatchObject({
      enforced: false,
      what: expect.stringMatching(/controller memory/),
    });
    expect(bare.limits.disk).toMatchObject({ enforced: true });
    const hierarchies = [{ version: 1 as const, parent: "/nonexistent", controllers: ["pids" as const] }];
    const { limits } = await bubblewrapDriver({ owner, hierarchies }).check();
    expect(limits.pids).toMatchObject({ enforced: false, remedy: expect.stringMatching(/root|Delegate/) });
  });

  it("SBX-02 starts nothing when a limit cannot be set", async () => {
    const bench = bubblewrapBench();
    const limits = { memoryBytes: 2 ** 30, cpus: 1, pids: -10, diskBytes: 2 ** 20 };
    await expect(run(bench, { script: "true", limits })).rejects.toThrow(/EINVAL/);
    expect(await bench.leftovers()).toEqual([]);
  });
});

describe.skipIf(needsHost)("an agent that is killed while a script runs in bubblewrap", () => {
  it.for([...runPoints, "printed"])("EXEC-02 leaves nothing after the next start: %s", async (dieAt) => {
    const [owner, sleep] = [uuidv7(), uniqueSleep()];
    const script = `${sleep} & setsid ${sleep} & echo printed; ${dieAt === "printed" || dieAt === "begun" ? "wait" : "exit"}`;
    const child = spawn(process.execPath, [program, JSON.stringify({ owner, script, dieAt })], {
      stdio: "ignore",
    });
    atEnd(() => void child.kill("SIGKILL"));
    const [, signal] = await once(child, "exit");
    expect(signal).toBe("SIGKILL");
    const bench = bubblewrapBench(owner);
    const left = new Set(await bench.leftovers());
    expect(await bench.driver.recover()).toBe(left.size);
    expect(left.size).toBe(dieAt === "removed" ? 0 : 1);
    expect([await bench.leftovers(), running(sleep)]).toEqual([[], []]);
    expect(await bench.driver.recover()).toBe(0);
  });

  it("EXEC-02 never ends a run of another agent", async () => {
    const [bench, other] = [bubblewrapBench(), bubblewrapBench()];
    const sleep = uniqueSleep();
    const { handle } = start(other, { script: sleep, id: uuidv7() });
    await until(other, () => running(sleep).length === 1, "the other run");
    expect(await bench.driver.recover()).toBe(0);
    expect(running(sleep)).toHaveLength(1);
    handle.kill();
    await ended(other, handle);
  });
});

describe("a tag", () => {
  it("EXEC-02 is a name that a cgroup can have", () => {
    expect(runTag(uuidv7(), uuidv7())).toMatch(/^[a-z0-9.-]{1,100}$/);
  });
});
