// Where this host has the controllers that limit memory, processor and processes: in cgroup v1 each may be mounted by itself, in
// v2 all are in one tree, and a host may have both. What a controller can do here is read from the host, never assumed.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type Controller = "memory" | "cpu" | "pids";
export const controllers: readonly Controller[] = ["memory", "cpu", "pids"];

/** `parent`: a directory below which a run gets a cgroup of its own. */
export type Hierarchy = { version: 1 | 2; parent: string; controllers: readonly Controller[] };

type Mount = { path: string; type: string; options: readonly string[] };

/** `mountinfo`: as in /proc/self/mountinfo; see proc(5). */
export function hierarchiesOf(mountinfo: string, readControllers = readControllersOf): Hierarchy[] {
  const mounts = mountinfo.split("\n").flatMap((line) => mountOf(line) ?? []);
  const found: Hierarchy[] = [];
  const missing = new Set(controllers);
  const add = (hierarchy: Hierarchy) => {
    const own = hierarchy.controllers.filter((one) => missing.delete(one));
    if (own.length > 0) found.push({ ...hierarchy, controllers: own });
  };
  for (const { path, type, options } of mounts) {
    if (type === "cgroup2") add({ version: 2, parent: path, controllers: known(readControllers(path)) });
    if (type === "cgroup") add({ version: 1, parent: path, controllers: known(options) });
  }
  return found;
}

export function hierarchiesOfHost(): Hierarchy[] {
  return hierarchiesOf(readFileSync("/proc/self/mountinfo", "utf8"));
}

function mountOf(line: string): Mount | undefined {
  const [before, after] = line.split(" - ");
  const path = before?.split(" ")[4];
  const [type, , options] = after?.split(" ") ?? [];
  return path && type && options ? { path, type, options: options.split(",") } : undefined;
}

function known(names: readonly string[]): Controller[] {
  return controllers.filter((one) => names.includes(one));
}

/** In v2 a controller can be mounted and absent: another tree has it, or the cgroup above did not delegate it. */
function readControllersOf(path: string): string[] {
  const file = join(path, "cgroup.controllers");
  return existsSync(file) ? readFileSync(file, "utf8").trim().split(" ") : [];
}
