// Real users of this machine for tests: named so that nobody else has them, and gone afterwards
// whatever a test did.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Host } from "../../tasks/executor.ts";
import { isOurs } from "../../tasks/os-users/accounts.ts";
import { removeCgroups } from "../../tasks/os-users/cgroups.ts";
import { removePrivateDirectories } from "../../tasks/os-users/private-directories.ts";
import { atEnd } from "../lifetime/at-end.ts";
import { noEndpoints, noTerminals } from "./run-task.ts";

export type TestUser = { username: string; allocation_id: string; home: string };

export function testUser(prefix = ""): TestUser {
  const username = `${prefix}hft-${randomBytes(5).toString("hex")}`;
  atEnd(() => clearAway(username));
  return { username, allocation_id: randomUUID(), home: `/home/${username}` };
}

async function clearAway(username: string): Promise<void> {
  const account = passwd(username);
  if (account) {
    spawnSync("pkill", ["--signal", "KILL", "--uid", username]);
    spawnSync("userdel", ["--force", username]);
    if (isOurs(account.uid)) {
      await removePrivateDirectories(account.uid);
      removeCgroups(account.uid);
    }
  }
  spawnSync("groupdel", [username], { stdio: "ignore" });
  for (const path of [`/home/${username}`, `/home/.${username}.holdfast`])
    rmSync(path, { recursive: true, force: true });
}

/** A state directory of its own, and what root's agent can do. */
export function rootHost(): Host {
  const stateDir = mkdtempSync(join(tmpdir(), "holdfast-users-"));
  atEnd(() => rmSync(stateDir, { recursive: true, force: true }));
  return { stateDir, profile: noEndpoints, capabilities: ["os_users"], account: "root", terminals: noTerminals };
}

export function passwd(username: string): { uid: number; gid: number; home: string; shell: string } | undefined {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((text) => text.startsWith(`${username}:`));
  if (!line) return undefined;
  const [, , uid, gid, , home = "", shell = ""] = line.split(":");
  return { uid: Number(uid), gid: Number(gid), home, shell };
}

export function hasGroup(name: string): boolean {
  return spawnSync("getent", ["group", name]).status === 0;
}

export function recordsOf(host: Host): Record<string, { uid: number; state: string; allocation_id: string }> {
  return JSON.parse(readFileSync(join(host.stateDir, "users.json"), "utf8")).users;
}

/** Ends by SIGKILL when the task enters the phase. */
export async function dieAtPhase(type: string, params: unknown, host: Host, phase: string): Promise<void> {
  const script = fileURLToPath(new URL("../phase-crash/die-at-phase.ts", import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify({ type, params, host, phase })], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk) => (said += chunk));
  const [code, signal] = await once(child, "exit");
  if (signal !== "SIGKILL") throw new Error(`it lived through ${phase} and ended with ${code}: ${said}`);
}

export function system(command: string, ...args: string[]): string {
  return execFileSync(command, args, { encoding: "utf8" });
}
