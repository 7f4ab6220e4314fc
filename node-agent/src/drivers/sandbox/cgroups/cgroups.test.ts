// Cgroups of hosts that the test machine is not: where all controllers are in v2, and where some are missing. Directories of
// a test stand for the file system of the kernel.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { scratchDirectory } from "../../../../../testkit/agent/scratch.ts";
import { hierarchiesOf } from "./hierarchies.ts";
import { createRunCgroup } from "./run-cgroup.ts";

const line = (path: string, type: string, options: string) =>
  `40 25 0:35 / ${path} rw,nosuid,nodev shared:9 - ${type} cgroup rw,${options}`;

describe("the controllers of a host", () => {
  it("SBX-02 are each where they are mounted, in v1", () => {
    const mounts = [
      line("/sys/fs/cgroup/cpu,cpuacct", "cgroup", "cpu,cpuacct"),
      line("/sys/fs/cgroup/memory", "cgroup", "memory"),
      line("/sys/fs/cgroup/pids", "cgroup", "pids"),
      line("/sys/fs/cgroup/unified", "cgroup2", "nsdelegate"),
      "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
    ].join("\n");
    expect(hierarchiesOf(mounts, () => ["hugetlb"])).toEqual([
      { version: 1, parent: "/sys/fs/cgroup/cpu,cpuacct", controllers: ["cpu"] },
      { version: 1, parent: "/sys/fs/cgroup/memory", controllers: ["memory"] },
      { version: 1, parent: "/sys/fs/cgroup/pids", controllers: ["pids"] },
    ]);
  });

  it("SBX-02 are in one tree, in v2, as far as that has them", () => {
    const mounts = line("/sys/fs/cgroup", "cgroup2", "nsdelegate");
    expect(hierarchiesOf(mounts, () => ["cpuset", "cpu", "io", "memory"])).toEqual([
      { version: 2, parent: "/sys/fs/cgroup", controllers: ["memory", "cpu"] },
    ]);
    expect(hierarchiesOf("")).toEqual([]);
  });
});

describe("the cgroup of a run in v2", () => {
  const limits = { memoryBytes: 1048576, cpus: 1.5, pids: 7, diskBytes: 0 };
  function tree(delegated: string) {
    const parent = scratchDirectory();
    writeFileSync(join(parent, "cgroup.subtree_control"), delegated);
    return { parent, hierarchy: { version: 2 as const, parent, controllers: ["memory", "cpu", "pids"] as const } };
  }

  it("SBX-02 gets every limit, after the controllers were enabled for it", async () => {
    const { parent, hierarchy } = tree("pids\n");
    const cgroup = createRunCgroup([hierarchy], { tag: "run", limits });
    await cgroup.attach(4711);
    const read = (name: string) => readFileSync(join(parent, name), "utf8");
    expect(read("cgroup.subtree_control")).toBe("+memory +cpu");
    expect(
      Object.fromEntries(readdirSync(join(parent, "run")).map((name) => [name, read(`run/${name}`)])),
    ).toEqual({
      "memory.max": "1048576",
      "cpu.max": "150000 100000",
      "pids.max": "7",
      "cgroup.procs": "4711",
    });
  });

  it("SBX-02 names the limits that were hit", () => {
    const { parent, hierarchy } = tree("memory cpu pids");
    const cgroup = createRunCgroup([hierarchy], { tag: "run", limits });
    const write = (name: string, text: string) => writeFileSync(join(parent, "run", name), text);
    write("memory.events", "low 0\nhigh 0\nmax 31\noom 0\noom_kill 0\n");
    write("pids.events", "max 0\n");
    write("cpu.stat", "usage_usec 1\nnr_periods 9\nnr_throttled 1\nthrottled_usec 5\n");
    expect(cgroup.hit()).toEqual([]);
    write("memory.events", "low 0\nhigh 0\nmax 31\noom 1\noom_kill 1\n");
    write("pids.events", "max 3\n");
    write("cpu.stat", "usage_usec 1\nnr_periods 9\nnr_throttled 8\nthrottled_usec 5\n");
    expect(cgroup.hit()).toEqual(["memory", "cpu", "pids"]);
  });

  it("SBX-02 is not made where controllers cannot be enabled", () => {
    const { parent, hierarchy } = tree("");
    mkdirSync(join(parent, "run"));
    expect(() => createRunCgroup([hierarchy], { tag: "run", limits })).toThrow(/EEXIST/);
  });
});
