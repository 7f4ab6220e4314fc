// A user of this machine for one run of a bench. The product makes it; the bench sees to it that it is gone
// afterwards, with all that runs as it, also when it was interrupted.

import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Lab } from "../lab.ts";

export type BorrowedUser = { name: string; account(): { uid: number; home: string } };

export function borrowedUser(lab: Lab): BorrowedUser {
  if (process.getuid?.() !== 0) throw new Error("this bench makes a user: run it as root");
  const name = `bench-${randomBytes(4).toString("hex")}`;
  lab.onClose(() => removeUser(name));
  return {
    name,
    account: () => {
      const found = accountOf(name);
      if (!found) throw new Error(`there is no user ${name}`);
      return found;
    },
  };
}

/** Processes of that user. */
export function processesOf(uid: number): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && ownerOf(pid) === uid);
}

async function removeUser(name: string): Promise<void> {
  const account = accountOf(name);
  if (!account) return;
  for (let left = processesOf(account.uid); left.length > 0; left = processesOf(account.uid)) {
    for (const pid of left) endIfThere(pid);
    await pause(20);
  }
  spawnSync("userdel", ["--force", name]);
  for (const path of [account.home, `/home/.${name}.holdfast`]) rmSync(path, { recursive: true, force: true });
}

function accountOf(name: string): { uid: number; home: string } | undefined {
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  const [, , uid, , , home] = lines.find((line) => line.startsWith(`${name}:`))?.split(":") ?? [];
  return uid && home ? { uid: Number(uid), home } : undefined;
}

function ownerOf(pid: number): number | undefined {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid;
}

function endIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone already.
  }
}
