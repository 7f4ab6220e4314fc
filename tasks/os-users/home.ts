// A user's home. It belongs to a tenant, who may put a link in place of any name at any moment, so
// root goes by open directories (/proc/self/fd/…), never twice by the same path, and follows no link.

import { randomBytes } from "node:crypto";
import { constants, readFileSync, realpathSync } from "node:fs";
import * as fs from "node:fs/promises";
import { join } from "node:path";
import { isErrno, syncDirectory } from "@holdfast/kit/files";
import { ToolRefused } from "./accounts.ts";
import { mountsOf } from "./file-systems.ts";
import { runTool } from "./tools.ts";

const HOMES = "/home";
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW } = constants;

export type Owner = { uid: number; gid: number };

export function homeOf(name: string): string {
  return join(HOMES, name);
}

/** Where a home is made ready. No user can be called so, and only root can write beside homes. */
function draftOf(name: string): string {
  return join(HOMES, `.${name}.holdfast`);
}

/** Who has it; `undefined` where there is nothing. Anything but a directory is nobody's home. */
export async function ownerOfHome(name: string): Promise<number | "not a directory" | undefined> {
  try {
    const found = await fs.lstat(homeOf(name));
    return found.isDirectory() ? found.uid : "not a directory";
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** Appears complete, with its owner and keys, or not at all: a crash leaves only a draft, which is made anew. */
export async function makeHome(name: string, owner: Owner, keys: readonly string[]): Promise<void> {
  const draft = draftOf(name);
  await removeTree(draft);
  await fs.mkdir(draft, { mode: 0o700 });
  await fs.cp("/etc/skel", draft, { recursive: true, verbatimSymlinks: true }).catch((error) => {
    if (!isErrno(error, "ENOENT")) throw error;
  });
  for (const entry of await fs.readdir(draft, { recursive: true }))
    await fs.lchown(join(draft, entry), owner.uid, owner.gid);
  await fs.chmod(draft, 0o700);
  await fs.chown(draft, owner.uid, owner.gid);
  await writeKeysIn(draft, owner, keys);
  await fs.rename(draft, homeOf(name));
  syncDirectory(HOMES);
}

/** Something in the home is not what it should be; nothing was written through it. */
export class HomeUnsafe extends Error {
  override name = "HomeUnsafe";
}

/** Makes these the user's keys, and no others. */
export async function writeAuthorizedKeys(name: string, owner: Owner, keys: readonly string[]): Promise<void> {
  await writeKeysIn(homeOf(name), owner, keys);
}

async function writeKeysIn(path: string, owner: Owner, keys: readonly string[]): Promise<void> {
  const home = await openDirectory(path, path);
  try {
    if ((await home.stat()).uid !== owner.uid) throw new HomeUnsafe(`${path} belongs to somebody else.`);
    const ssh = await openSshDirectory(home, path, owner);
    try {
      await replaceKeys(ssh, path, owner, keys);
    } finally {
      await ssh.close();
    }
  } finally {
    await home.close();
  }
}

async function openSshDirectory(home: fs.FileHandle, path: string, owner: Owner): Promise<fs.FileHandle> {
  const shown = `${path}/.ssh`;
  await fs.mkdir(within(home, ".ssh"), { mode: 0o700 }).catch((error) => {
    if (!isErrno(error, "EEXIST")) throw error;
  });
  const ssh = await openDirectory(within(home, ".ssh"), shown);
  try {
    const { uid, dev } = await ssh.stat();
    // Root's is the one just made, or one that was made before a crash.
    if (uid !== owner.uid && uid !== 0) throw new HomeUnsafe(`${shown} belongs to somebody else.`);
    if (dev !== (await home.stat()).dev) throw new HomeUnsafe(`${shown} is on another file system.`);
    await ssh.chown(owner.uid, owner.gid);
    await ssh.chmod(0o700);
    return ssh;
  } catch (error) {
    await ssh.close();
    throw error;
  }
}

async function replaceKeys(
  ssh: fs.FileHandle,
  home: string,
  owner: Owner,
  keys: readonly string[],
): Promise<void> {
  const draft = within(ssh, `.authorized_keys.${randomBytes(8).toString("hex")}`);
  const file = await fs.open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    try {
      await file.writeFile(keys.map((key) => `${key}\n`).join(""));
      await file.chmod(0o600);
      await file.chown(owner.uid, owner.gid);
      await file.sync();
    } finally {
      await file.close();
    }
    // Replaces a planted link itself, not what it points to.
    await fs.rename(draft, within(ssh, "authorized_keys"));
    await ssh.sync();
  } catch (error) {
    await fs.unlink(draft).catch(() => {});
    if (isErrno(error, "EISDIR")) throw new HomeUnsafe(`${home}/.ssh/authorized_keys is a directory.`);
    throw error;
  }
}

async function openDirectory(path: string, shown: string): Promise<fs.FileHandle> {
  try {
    return await fs.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  } catch (error) {
    if (isErrno(error, "ELOOP") || isErrno(error, "ENOTDIR"))
      throw new HomeUnsafe(`${shown} is a link or a file, not a directory.`);
    throw error;
  }
}

/** What `openat` would do: the name in this very directory, wherever its path leads by now. */
function within(directory: fs.FileHandle, name: string): string {
  return `/proc/self/fd/${directory.fd}/${name}`;
}

/** File systems mounted on the home or somewhere below it. */
export function mountsInHome(name: string): string[] {
  const home = join(realpathSync(HOMES), name);
  return mountsOf(readFileSync("/proc/self/mountinfo", "utf8"))
    .map(({ path }) => path)
    .filter((path) => path === home || path.startsWith(`${home}/`));
}

export async function removeHome(name: string, signal?: AbortSignal): Promise<void> {
  await removeTree(draftOf(name), signal);
  await removeTree(homeOf(name), signal);
}

/** `rm` goes by open directories, where Node's own removal could be led astray, and stays on one file system. */
export async function removeTree(path: string, signal?: AbortSignal): Promise<void> {
  const args = ["--recursive", "--force", "--one-file-system", "--", path];
  const answer = await runTool("rm", args, { timeoutMs: 15 * 60_000, ...(signal && { signal }) });
  if (answer.code !== 0) throw new ToolRefused("rm", answer);
}
