// How a tenant's shell is isolated from the host and from other tenants: its resource limits, and what its holder does
// before it becomes the user. The limits are the same with systemd and without.

import { existsSync, readFileSync } from "node:fs";
import { totalmem } from "node:os";
import type { ShellUser } from "@holdfast/tasks/executor";
import { isOurs } from "@holdfast/tasks/os-users/accounts";
import { makeCgroups } from "@holdfast/tasks/os-users/cgroups";
import { makePrivateDirectories } from "@holdfast/tasks/os-users/private-directories";
import type { Confinement } from "./confine.mjs";

export type ShellLimits = {
  /** Threads count too. Of all shells of a user together by RLIMIT_NPROC. */
  processes: number;
  memoryBytes: number;
  openFiles: number;
};

/** More than any legitimate user needs: beyond this it is a fork bomb. */
const MOST_PROCESSES = 16_384;
const PART_OF_PROCESSES = 1 / 4;
const PART_OF_MEMORY = 4 / 5;
const MOST_OPEN_FILES = 65_536;

/** Shares of the host's resources that leave enough for other tenants and for the agent. */
export function shellLimits(): ShellLimits {
  const most = Math.min(numberIn("/proc/sys/kernel/pid_max"), numberIn("/proc/sys/kernel/threads-max"));
  return {
    processes: Math.min(MOST_PROCESSES, Math.floor(most * PART_OF_PROCESSES)),
    memoryBytes: Math.floor(totalmem() * PART_OF_MEMORY),
    openFiles: Math.min(MOST_OPEN_FILES, openFilesHere()),
  };
}

/** For a user of an allocation. An agent's own account is confined by whoever runs the agent. */
export async function confinementOf({ uid }: ShellUser, limits: ShellLimits): Promise<Confinement> {
  if (process.geteuid?.() !== 0 || !isOurs(uid)) return { directories: [], cgroups: [] };
  return {
    directories: await makePrivateDirectories(uid).catch(() => []),
    // systemd has set them for the holder's unit already.
    cgroups: hasSystemd() ? [] : makeCgroups(uid, limits),
  };
}

/** As sd_booted(3) decides it. An agent of a regular user cannot control system services. */
export function hasSystemd(): boolean {
  return process.geteuid?.() === 0 && existsSync("/run/systemd/system");
}

function openFilesHere(): number {
  const [, hard = ""] = /^Max open files\s+\S+\s+(\S+)/m.exec(textOf("/proc/self/limits")) ?? [];
  return Number(hard) || MOST_OPEN_FILES;
}

function numberIn(path: string): number {
  return Number(textOf(path).trim()) || MOST_PROCESSES;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
