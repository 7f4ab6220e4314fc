// Accounts and groups of the host. Lookups go through getent, so that names from LDAP or SSSD count
// as taken too; changes go through shadow's tools, one at a time, because they share one lock file.

import { existsSync } from "node:fs";
import { type Answer, findTool, isExecutable, runTool } from "./tools.ts";

/** Beyond what useradd gives to people, below what is handed out to containers. */
export const UIDS = { first: 70_000, last: 79_999 } as const;

export function isOurs(uid: number): boolean {
  return Number.isInteger(uid) && uid >= UIDS.first && uid <= UIDS.last;
}

/** Before anything of a uid is ended or removed. */
export function assertOurs(uid: number): void {
  if (!isOurs(uid)) throw new Error(`${uid} is no uid of ours: nothing of it is touched`);
}

export type Account = { name: string; uid: number; gid: number; home: string; shell: string };

const NOT_FOUND = 2;

export async function findAccount(nameOrUid: string): Promise<Account | undefined> {
  const fields = await look("passwd", nameOrUid);
  if (!fields) return undefined;
  const [name = "", , uid, gid, , home = "", shell = ""] = fields;
  return { name, uid: Number(uid), gid: Number(gid), home, shell };
}

export async function findGroup(nameOrGid: string): Promise<{ name: string; gid: number } | undefined> {
  const fields = await look("group", nameOrGid);
  return fields && { name: fields[0] ?? "", gid: Number(fields[2]) };
}

async function look(database: "passwd" | "group", key: string): Promise<string[] | undefined> {
  const { code, stdout, stderr } = await runTool("getent", [database, key]);
  if (code === NOT_FOUND) return undefined;
  if (code !== 0) throw new ToolRefused(`getent ${database}`, { code, stdout, stderr });
  return stdout.trimEnd().split(":");
}

/** A tool ended with an exit code that its caller has no use for. */
export class ToolRefused extends Error {
  override name = "ToolRefused";

  constructor(what: string, { code, stderr }: Answer) {
    super(`${what} ended with ${code}: ${stderr.trim().slice(0, 500) || "it did not say why"}`);
  }
}

export async function addGroup(name: string, gid: number): Promise<void> {
  await change("groupadd", ["--gid", String(gid), "--", name]);
}

/** Without a home, which is made apart, and without subordinate ids, which would be more uids to watch. */
export async function addAccount(account: { name: string; uid: number; home: string; comment: string }) {
  await change("useradd", [
    ...["--uid", String(account.uid), "--gid", String(account.uid)],
    ...["--no-create-home", "--home-dir", account.home, "--shell", loginShell(), "--comment", account.comment],
    ...["--key", "SUB_UID_COUNT=0", "--key", "SUB_GID_COUNT=0", "--key", `UID_MAX=${UIDS.last}`],
    ...["--", account.name],
  ]);
}

export async function setPrimaryGroup(name: string, gid: number): Promise<void> {
  await change("usermod", ["--gid", String(gid), "--", name]);
}

export async function setShell(name: string, shell: string): Promise<void> {
  await change("usermod", ["--shell", shell, "--", name]);
}

/** An account without a shell in passwd has /bin/sh. */
export function canRun(shell: string): boolean {
  return isExecutable(shell || "/bin/sh");
}

/** No new session can begin: the password is locked, the account expired, and its shell says no. */
export async function lockAccount(name: string): Promise<void> {
  const shell = findTool("nologin") ?? "/bin/false";
  await change("usermod", ["--lock", "--expiredate", "1", "--shell", shell, "--", name]);
}

/** `busy`: the tool still sees a process of that account. The home must be gone already. */
export async function removeAccount(name: string, { force }: { force: boolean }): Promise<"removed" | "busy"> {
  const HOME_NOT_THERE = 12;
  const BUSY = 8;
  const args = [...(force ? ["--force"] : []), "--remove", "--", name];
  const code = await change("userdel", args, [HOME_NOT_THERE, BUSY]);
  return code === BUSY ? "busy" : "removed";
}

export async function removeGroup(name: string): Promise<void> {
  await change("groupdel", ["--", name]);
}

let lastChange: Promise<unknown> = Promise.resolve();

async function change(tool: string, args: string[], alsoGood: number[] = []): Promise<number> {
  const answer = lastChange.then(() => runTool(tool, args));
  lastChange = answer.catch(() => {});
  const { code, stdout, stderr } = await answer;
  if (code !== 0 && !alsoGood.includes(code)) throw new ToolRefused(tool, { code, stdout, stderr });
  return code;
}

export function loginShell(): string {
  return existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh";
}
