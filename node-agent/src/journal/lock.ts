// One agent per state directory. The lock is a symbolic link whose target names the process that
// holds it: created atomically, and small enough to need no disk block, so a full disk does not stop an
// agent from starting. A holder that was killed leaves it behind; the next one sees that its process
// is gone and takes it over.

import { readFileSync, readlinkSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { isErrno, removeIfPresent } from "@holdfast/kit/files";
import { identify } from "@holdfast/kit/processes";
import { UsageError } from "@holdfast/kit/settings";
import { explainWriteError, HostProblem, STATE_DIR_SETTING } from "../identity/state-directory.ts";

export type StateLock = { release(): void };

const LOCK_FILE = "agent.lock";

/** Throws a UsageError that names the pid when another agent uses the directory. */
export function lockStateDirectory(
  directory: string,
  setting = STATE_DIR_SETTING,
  alternative = `give this one a directory of its own with ${setting}`,
): StateLock {
  const path = join(directory, LOCK_FILE);
  const us = describe(process.pid);
  let holder: string | undefined;
  try {
    holder = take(path, us);
  } catch (error) {
    throw explainWriteError(error, directory, setting);
  }
  if (holder !== undefined) {
    throw new UsageError(
      `Another agent (pid ${pidOf(holder)}) uses the state directory ${directory}. Stop it first, or ${alternative}.`,
    );
  }
  return {
    release() {
      if (read(path) === us) removeIfPresent(path);
    },
  };
}

/** The pid of the agent that runs on this directory. */
export function runningAgent(directory: string): number | undefined {
  const holder = read(join(directory, LOCK_FILE));
  return holder !== undefined && lives(holder) ? pidOf(holder) : undefined;
}

/**
 * Undefined when this process has it now, otherwise its holder. The link of a dead holder is replaced only by
 * whoever holds the lock `path.next`, and only while it still names that dead holder; so of several
 * that find it dead at the same time one wins. One that died holding `path.next` is replaced likewise.
 */
function take(path: string, us: string): string | undefined {
  for (;;) {
    if (makeLink(us, path)) return undefined;
    const holder = read(path);
    if (holder === undefined) continue;
    if (holder === us) return undefined;
    if (lives(holder)) return holder;
    const next = `${path}.next`;
    const rival = take(next, us);
    if (rival !== undefined) return rival;
    if (read(path) === holder) {
      renameSync(next, path);
      return undefined;
    }
    removeIfPresent(next);
  }
}

function makeLink(target: string, path: string): boolean {
  try {
    symlinkSync(target, path);
    return true;
  } catch (error) {
    if (isErrno(error, "EEXIST")) return false;
    throw error;
  }
}

function read(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    if (isErrno(error, "EINVAL")) {
      throw new HostProblem("state_dir_read_only", `${path} is not a lock that an agent made. Remove it.`);
    }
    throw error;
  }
}

/** Pid, start time and boot: a pid alone is reused, and start times restart with every boot. */
function describe(pid: number): string {
  return `${pid}.${identify(pid)?.startTicks ?? "?"}.${bootId()}`;
}

function lives(holder: string): boolean {
  const pid = pidOf(holder);
  return holder.split(".")[1] === "?" ? answersSignals(pid) : describe(pid) === holder;
}

function pidOf(holder: string): number {
  return Number(holder.split(".")[0]);
}

/** Where there is no /proc. */
function answersSignals(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isErrno(error, "EPERM");
  }
}

function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").slice(0, 8);
  } catch {
    return "?";
  }
}
