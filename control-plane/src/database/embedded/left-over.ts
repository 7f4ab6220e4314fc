// What an earlier start left behind after a kill -9: a running server, or only its orphaned
// backends, which still hold shared memory and would keep a new server from starting. They are
// found by what the kernel says about them: PostgreSQL's processes stand in the data directory.

import { existsSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { basename, join } from "node:path";
import { readFileIfPresent, removeIfPresent } from "@holdfast/kit/files";
import { allEnded, identify, isAlive, type ProcessIdentity, signalIfAlive } from "@holdfast/kit/processes";

/** How long each signal may take, gentlest first. A fast shutdown writes a checkpoint. */
const ways = [
  { signal: "SIGINT", deadlineMs: 20_000 },
  { signal: "SIGQUIT", deadlineMs: 5_000 },
  { signal: "SIGKILL", deadlineMs: 10_000 },
] as const;

export type PidFile = { pid: number; ready: boolean };

export function readPidFile(dataDirectory: string): PidFile | undefined {
  const lines = readFileIfPresent(join(dataDirectory, "postmaster.pid"))?.split("\n");
  if (lines === undefined) return undefined;
  // A single-user server writes its pid as a negative number.
  return { pid: Math.abs(Number(lines[0])), ready: lines[7]?.trim() === "ready" };
}

/** Returns when no process of PostgreSQL uses the data directory any more. */
export async function stopLeftOver(dataDirectory: string, onProgress: (text: string) => void): Promise<void> {
  const recorded = readPidFile(dataDirectory);
  const postmaster = postgresProcessesIn(dataDirectory).find((one) => one.pid === recorded?.pid);
  if (postmaster) {
    onProgress(`stopping the PostgreSQL that an earlier start left behind (pid ${postmaster.pid})`);
    await end([postmaster], ways);
  }
  // Backends notice by themselves that the postmaster is gone, unless they are stuck in something long.
  // A postmaster whose pid file was deleted is among them, and would stop at once itself on noticing that.
  const orphans = postgresProcessesIn(dataDirectory);
  if (orphans.length > 0) {
    onProgress(`waiting for ${orphans.length} orphaned PostgreSQL processes to end`);
    if (!(await allEnded(orphans, 3_000))) await end(orphans, ways.slice(1));
  }
  // The server removes a stale file itself, except when its pid now belongs to another process.
  removeIfPresent(join(dataDirectory, "postmaster.pid"));
}

/** For a directory that is thrown away. */
export async function killPostgresIn(directory: string): Promise<void> {
  await end(postgresProcessesIn(directory), ways.slice(-1));
}

export function postgresProcessesIn(dataDirectory: string): ProcessIdentity[] {
  if (!existsSync(dataDirectory)) return [];
  // The kernel knows no symbolic links.
  const directory = realpathSync(dataDirectory);
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => linkOf(pid, "cwd") === directory && isPostgres(pid))
    .map(identify)
    .filter((found) => found !== undefined);
}

function isPostgres(pid: number): boolean {
  const program = linkOf(pid, "exe");
  return program !== undefined && basename(program).replace(" (deleted)", "") === "postgres";
}

function linkOf(pid: number, name: "cwd" | "exe"): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/${name}`);
  } catch {
    return undefined;
  }
}

async function end(processes: ProcessIdentity[], attempts: readonly (typeof ways)[number][]): Promise<void> {
  for (const { signal, deadlineMs } of attempts) {
    for (const one of processes) signalIfAlive(one, signal);
    if (await allEnded(processes, deadlineMs)) return;
  }
  const pids = processes.filter(isAlive).map((one) => one.pid);
  throw new Error(`PostgreSQL processes ${pids.join(", ")} do not end, not even by SIGKILL; the disk may hang.`);
}
