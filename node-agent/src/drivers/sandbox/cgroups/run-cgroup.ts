// The cgroup of one run: one directory in each hierarchy, named by the tag of the run. Removing it proves that no process is
// left, because the kernel refuses to remove one that has any.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EnforcedLimit } from "@holdfast/contracts/execution/limits";
import { isErrno } from "@holdfast/kit/files";
import { isHeldBack, runIdOf, type SandboxLimits } from "../driver.ts";
import type { Controller, Hierarchy } from "./hierarchies.ts";

const PERIOD_US = 100_000;
const LEAST_QUOTA_US = 1000;
const PAUSE_MS = 2;
/** Of a process that does not die although it was killed, as on a disk that does not answer. */
const MOST_ROUNDS = 2500;

type Written = readonly { file: string; value: string; optional?: boolean }[];

/** What is written for a limit, by version. */
export function filesFor(controller: Controller, version: 1 | 2, limits: SandboxLimits): Written {
  const { memoryBytes, cpus, pids } = limits;
  const quota = Math.max(LEAST_QUOTA_US, Math.round(cpus * PERIOD_US));
  switch (controller) {
    case "memory":
      return version === 1
        ? [
            { file: "memory.limit_in_bytes", value: `${memoryBytes}` },
            // Absent where the kernel does not count swap.
            { file: "memory.memsw.limit_in_bytes", value: `${memoryBytes}`, optional: true },
          ]
        : [
            { file: "memory.max", value: `${memoryBytes}` },
            { file: "memory.swap.max", value: "0", optional: true },
          ];
    case "cpu":
      return version === 1
        ? [
            { file: "cpu.cfs_period_us", value: `${PERIOD_US}` },
            { file: "cpu.cfs_quota_us", value: `${quota}` },
          ]
        : [{ file: "cpu.max", value: `${quota} ${PERIOD_US}` }];
    case "pids":
      return [{ file: "pids.max", value: `${pids}` }];
  }
}

export type RunCgroup = {
  /** Moves a process, and with it all that it will start. The kernel takes some milliseconds for it, in which others go on. */
  attach(pid: number): Promise<void>;
  /** Limits that the run has hit so far. */
  hit(): EnforcedLimit[];
  /** Kills what is in it, until nothing is, and removes it. Rejects when something of it does not end. */
  remove(): Promise<void>;
};

/** Throws when a limit cannot be set; nothing is left then. */
export function createRunCgroup(
  hierarchies: readonly Hierarchy[],
  { tag, limits }: { tag: string; limits: SandboxLimits },
): RunCgroup {
  const places = hierarchies.map((one) => ({ ...one, path: join(one.parent, tag) }));
  try {
    for (const { path, version, parent, controllers } of places) {
      if (version === 2) delegate(parent, controllers);
      mkdirSync(path);
      for (const { file, value, optional } of controllers.flatMap((one) => filesFor(one, version, limits))) {
        if (!optional || existsSync(join(path, file))) writeFileSync(join(path, file), value);
      }
    }
  } catch (error) {
    for (const { path } of places) removeIfEmpty(path);
    throw error;
  }
  const paths = places.map(({ path }) => path);
  return {
    async attach(pid) {
      // One after the other: only the first one waits for the kernel.
      for (const path of paths) await writeFile(join(path, "cgroup.procs"), `${pid}`);
    },
    hit: () => places.flatMap(({ path, controllers }) => controllers.filter((one) => isHit[one](path))),
    remove: () => removeCgroups(paths),
  };
}

const isHit: Record<Controller, (path: string) => boolean> = {
  memory: (path) => counter(path, ["memory.events", "memory.oom_control"], "oom_kill") > 0,
  pids: (path) => counter(path, ["pids.events"], "max") > 0,
  cpu: (path) =>
    isHeldBack({
      periods: counter(path, ["cpu.stat"], "nr_periods"),
      throttled: counter(path, ["cpu.stat"], "nr_throttled"),
    }),
};

/** Of the first of these files that exists. */
function counter(path: string, files: readonly string[], name: string): number {
  const file = files.map((one) => join(path, one)).find(existsSync);
  const line =
    file &&
    readFileSync(file, "utf8")
      .split("\n")
      .find((one) => one.startsWith(`${name} `));
  return line ? Number(line.split(" ")[1]) : 0;
}

/** In v2 children have the controllers that their parent lists. */
function delegate(parent: string, wanted: readonly Controller[]): void {
  const file = join(parent, "cgroup.subtree_control");
  const present = readFileSync(file, "utf8").trim().split(" ");
  const missing = wanted.filter((one) => !present.includes(one));
  if (missing.length > 0) writeFileSync(file, missing.map((one) => `+${one}`).join(" "));
}

/** Cgroups that carry the tag of a run of this owner, by run. */
export function cgroupsOf(hierarchies: readonly Hierarchy[], owner: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { parent } of hierarchies) {
    for (const name of readdirSync(parent)) {
      const id = runIdOf(owner, name);
      if (id !== undefined) found.set(id, [...(found.get(id) ?? []), join(parent, name)]);
    }
  }
  return found;
}

export async function removeCgroups(paths: readonly string[]): Promise<void> {
  for (let round = 0; ; round += 1) {
    const left = paths.filter((path) => !removeIfEmpty(path));
    if (left.length === 0) return;
    if (round === MOST_ROUNDS) {
      throw new Error(
        `processes of the run cannot be ended: ${[...new Set(left.flatMap(processesIn))].join(", ")}`,
      );
    }
    for (const pid of new Set(left.flatMap(processesIn))) kill(pid);
    await new Promise((resolve) => setTimeout(resolve, round === 0 ? 0 : PAUSE_MS));
  }
}

function removeIfEmpty(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    if (isErrno(error, "ENOENT")) return true;
    if (isErrno(error, "EBUSY")) return false;
    throw error;
  }
}

function processesIn(path: string): number[] {
  try {
    return readFileSync(join(path, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** 0 is a process of another pid namespace, which this one cannot name. */
function kill(pid: number): void {
  try {
    if (pid > 1) process.kill(pid, "SIGKILL");
  } catch {
    // Gone.
  }
}
