// @ts-check
// Ends a shell and the program in its foreground as a terminal does that is closed; by force if they do not end.

import { readFileSync } from "node:fs";

const HANG_UP_MS = 5_000;
/** After the first; then twice as long, and so on. */
const HANG_UP_AGAIN_MS = 250;

/** @param {number} pid of the shell @param {() => boolean} hasEnded */
export function hangUp(pid, hasEnded) {
  signal(pid, "SIGHUP");
  // A stopped program would not notice.
  signal(pid, "SIGCONT");
  hangUpAgain(pid, hasEnded, HANG_UP_AGAIN_MS);
  setTimeout(() => signal(pid, "SIGKILL"), HANG_UP_MS);
}

/** @param {number} pid @param {NodeJS.Signals} name */
function signal(pid, name) {
  for (const group of new Set([pid, foregroundOf(pid)])) {
    try {
      if (group > 1) process.kill(-group, name);
    } catch {
      // It has ended, or became somebody else's by sudo.
    }
  }
}

/**
 * To the shell alone. One that is just starting may not have received the first: for a moment it is no group yet, and
 * bash forgets a signal that comes between its start-up files and its first prompt.
 * @param {number} pid @param {() => boolean} hasEnded @param {number} afterMs
 */
function hangUpAgain(pid, hasEnded, afterMs) {
  setTimeout(() => {
    if (hasEnded()) return;
    try {
      process.kill(pid, "SIGHUP");
    } catch {
      // Its end is about to be reported.
    }
    hangUpAgain(pid, hasEnded, 2 * afterMs);
  }, afterMs);
}

/** @param {number} pid of a shell: the group that has its terminal now. */
function foregroundOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[5]);
  } catch {
    return pid;
  }
}
