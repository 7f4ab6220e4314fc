// Descriptors that the agent got from whoever started it would be open in every script, too: Node.js closes only its own when it
// starts a program. They cannot be closed here, because the process may use them; so a script finds /dev/null in their place.

import type { StdioOptions } from "node:child_process";
import { openSync, readdirSync, readFileSync } from "node:fs";

const CLOSE_ON_EXEC = 0o2000000;

/** Of a process whose /proc is at this place. */
function inheritedDescriptors(proc = "/proc/self"): number[] {
  return readdirSync(`${proc}/fdinfo`)
    .map(Number)
    .filter((fd) => fd > 2 && (flagsOf(`${proc}/fdinfo/${fd}`) & CLOSE_ON_EXEC) === 0);
}

let covered: { fds: number[]; nowhere: number } | undefined;

/** The same, with whatever else would be inherited replaced. */
export function withoutInherited(stdio: Exclude<StdioOptions, string>): Exclude<StdioOptions, string> {
  // Only what was there at the start: Node.js opens everything so that it is closed.
  covered ??= { fds: inheritedDescriptors(), nowhere: openSync("/dev/null", "r") };
  const all = [...stdio];
  for (const fd of covered.fds) {
    while (all.length < fd) all.push("ignore");
    if (fd >= stdio.length) all[fd] = covered.nowhere;
  }
  return all;
}

function flagsOf(path: string): number {
  try {
    return Number.parseInt(/^flags:\s*(\d+)/m.exec(readFileSync(path, "utf8"))?.[1] ?? "0", 8);
  } catch {
    // Closed meanwhile: it was the one by which the directory was read.
    return CLOSE_ON_EXEC;
  }
}
