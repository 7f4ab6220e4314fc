// The directory of a run, with a size: a file system in a sparse file, which needs root. It is on the disk, because what is
// written to memory would count against the memory of the script. The file has no name any more once it is mounted, so an
// agent that is killed leaves a mount at most. The file system of a run ends with it, so nothing of it waits for the disk.

import { execFile } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { LimitCheck } from "./driver.ts";
import { BLOCK, type EmptyDisks } from "./empty-disks.ts";

export type WorkDirectory = {
  /** What becomes /work. */
  path: string;
  /** Whether nothing more can be written to it. */
  isFull(): Promise<boolean>;
  /** Takes it from the host. A container that still runs keeps it until it ends. */
  detach(): Promise<void>;
};

type Place = { directory: string; user: { uid: number; gid: number } };

const exec = promisify(execFile);

export function checkDisk(isRoot = process.getuid?.() === 0): LimitCheck {
  if (isRoot) return { enforced: true, by: "a file system of this size for each run" };
  return {
    enforced: false,
    what: "only root can give /work a size",
    remedy: "run the agent as root",
  };
}

export type Size = { bytes: number; disks: EmptyDisks };

/** Without a size, there is no limit. Throws with a message for a person. */
export async function makeWorkDirectory({ directory, user }: Place, size?: Size): Promise<WorkDirectory> {
  const path = join(directory, "work");
  mkdirSync(path, { recursive: true, mode: 0o700 });
  if (size !== undefined) await mountDisk(directory, path, size);
  chownSync(path, user.uid, user.gid);
  chmodSync(path, 0o700);
  return {
    path,
    async isFull() {
      if (size === undefined) return false;
      const { bavail, bsize, ffree } = await statfs(path);
      return bavail * bsize < BLOCK || ffree === 0;
    },
    detach: () => unmount(path),
  };
}

/** The kind of file system is named, so that nobody has to find it out, and writes wait for no disk. */
const MOUNT = ["-i", "-t", "ext4", "-o", "loop,nosuid,nodev,noatime,barrier=0"];

async function mountDisk(directory: string, path: string, { bytes, disks }: Size): Promise<void> {
  const file = join(directory, "disk");
  try {
    await disks.write(file, bytes);
    await exec("mount", [...MOUNT, file, path]);
    rmdirSync(join(path, "lost+found"));
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    throw new Error(`/work could not be given a size: ${(stderr || message).trim()}`);
  } finally {
    rmSync(file, { force: true });
  }
}

/** Also of an agent that was killed, at any point. */
export async function removeWorkDirectory(directory: string): Promise<void> {
  await unmount(join(directory, "work"));
  const remove = () => rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  try {
    remove();
  } catch {
    openUp(directory);
    remove();
  }
}

/** Once for each mount: a kill between mounting and reading leaves one, and nothing hides below it. */
async function unmount(path: string): Promise<void> {
  while (isMounted(path)) await exec("umount", ["-i", path]).catch(() => exec("umount", ["-l", path]));
}

function isMounted(path: string): boolean {
  const escaped = path.replaceAll(/[ \t\n\\]/g, (c) => `\\0${c.charCodeAt(0).toString(8)}`);
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .some((line) => line.split(" ")[4] === escaped);
}

/** A directory that a script made inaccessible to its own user, who is the agent's where that is not root. */
function openUp(directory: string): void {
  chmodSync(directory, 0o700);
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) openUp(join(directory, entry.name));
  }
}
