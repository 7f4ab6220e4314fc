// @ts-check
// Closes what came from whoever started the agent: a lock, a log, a pipe of root's that was left open would
// otherwise be the tenant's to use. Everything that this process opened itself ends with exec, and stays.

import { closeSync, readdirSync, readFileSync } from "node:fs";

const LAST_STANDARD = 2;
const CLOSES_ON_EXEC = 0o2000000;

export function dropInherited() {
  for (const fd of readdirSync("/proc/self/fd").map(Number)) if (isInherited(fd)) closeSync(fd);
}

/** @param {number} fd */
function isInherited(fd) {
  if (fd <= LAST_STANDARD) return false;
  try {
    const [, flags = ""] = /^flags:\t([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8")) ?? [];
    return (Number.parseInt(flags, 8) & CLOSES_ON_EXEC) === 0;
  } catch {
    return false; // The directory's own, which was being read.
  }
}
