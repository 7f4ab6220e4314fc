// The processor time of a test file, for scripts/slowest-files.ts: of its worker, and of all processes that ended before the
// file did and were waited for. PostgreSQL of the run is shared, and counts for no file.

import { readFileSync } from "node:fs";

declare module "vitest" {
  interface TaskMeta {
    /** Of the whole file, in milliseconds. */
    processorMs?: number;
  }
}

/** Linux counts the time of other processes in hundredths of a second. */
const MS_PER_TICK = 10;

/** What files before have used in this worker. In the process, since modules may be loaded anew for each file. */
const key = Symbol.for("holdfast.processor-time");
const counted = globalThis as { [key]?: number };

/** Since the end of the file before in this worker, or since the worker started. */
export function takeProcessorTime(): number {
  const now = ownMs() + childrenMs();
  const used = now - (counted[key] ?? 0);
  counted[key] = now;
  return used;
}

function ownMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function childrenMs(): number {
  const stat = readFileSync("/proc/self/stat", "utf8");
  // The name of the program comes before, in brackets, and may contain anything.
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(13, 15)
    .map(Number);
  return ((user ?? 0) + (system ?? 0)) * MS_PER_TICK;
}
