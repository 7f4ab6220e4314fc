// A control group for each of our users, on hosts where no systemd makes units with limits. It holds all of the
// user's shells together. Version 1 has a hierarchy for each controller, version 2 one for all; a host may have both,
// or none that can be written.

import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assertOurs } from "./accounts.ts";
import { mountsOf } from "./file-systems.ts";

export type CgroupLimits = { processes: number; memoryBytes: number };

type Controller = { name: "pids" | "memory"; file: { v1: string; v2: string }; limit: keyof CgroupLimits };

const controllers: readonly Controller[] = [
  { name: "pids", file: { v1: "pids.max", v2: "pids.max" }, limit: "processes" },
  { name: "memory", file: { v1: "memory.limit_in_bytes", v2: "memory.max" }, limit: "memoryBytes" },
];
const PARENT = "holdfast";

/** The directories to put the user's processes into; empty where the host lets nobody limit anything. */
export function makeCgroups(uid: number, limits: CgroupLimits): string[] {
  assertOurs(uid);
  const directories = controllers.flatMap((controller) => {
    const found = hierarchyOf(controller);
    if (!found) return [];
    const directory = join(found.path, PARENT, String(uid));
    try {
      if (found.version === "v2") delegate(found.path, controller);
      mkdirSync(directory, { recursive: true });
      if (found.version === "v2") delegate(join(found.path, PARENT), controller);
      writeFileSync(join(directory, controller.file[found.version]), String(limits[controller.limit]));
      return [directory];
    } catch {
      return [];
    }
  });
  return [...new Set(directories)];
}

/** The user's processes must have ended. */
export function removeCgroups(uid: number): void {
  assertOurs(uid);
  for (const controller of controllers) {
    const found = hierarchyOf(controller);
    try {
      if (found) rmdirSync(join(found.path, PARENT, String(uid)));
    } catch {
      // There was none, or the kernel still counts what has ended. An empty group limits nobody.
    }
  }
}

function hierarchyOf({ name }: Controller): { version: "v1" | "v2"; path: string } | undefined {
  const mounts = mountsOf(readFileSync("/proc/self/mountinfo", "utf8"));
  const v1 = mounts.find(({ type, options }) => type === "cgroup" && options.includes(name));
  if (v1) return { version: "v1", path: v1.path };
  const v2 = mounts.find(({ type, path }) => type === "cgroup2" && controllersIn(path).includes(name));
  return v2 && { version: "v2", path: v2.path };
}

function controllersIn(path: string): string[] {
  try {
    return readFileSync(join(path, "cgroup.controllers"), "utf8").trim().split(" ");
  } catch {
    return [];
  }
}

function delegate(directory: string, { name }: Controller): void {
  writeFileSync(join(directory, "cgroup.subtree_control"), `+${name}`);
}
