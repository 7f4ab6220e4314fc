// The directory of a run, with a size: a file system in a sparse file, which needs root. It is on the disk, because what is
// written to memory would count against the memory of the script. The file has no name any more once it is mounted, so an
// agent that is killed leaves a mount at most.

import { execFile } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { LimitCheck } from "./driver.ts";

export type WorkDirectory = {
  /** What becomes /work. */
  path: string;
  /** Whether nothing more can be written to it. */
  isFull(): Promise<boolean>;
};

type Place = { directory: string; user: { uid: number; gid: number } };

const exec = promisify(execFile);
/** Besides data, a file system of this kind has tables. */
const MOST_FILES = 65_536;
const BYTES_PER_FILE = 4096;

export function checkDisk(isRoot = process.getuid?.() === 0): LimitCheck {
  if (isRoot) return { enforced: true, by: "a file system of this size for each run" };
  return {
    enforced: false,
    what: "only root can give /work a size",
    remedy: "run the agent as root",
  };
}

/** `bytes`: undefined for no limit. Throws with a message for a person. */
export async function makeWorkDirectory({ directory, user }: Place, bytes?: number): Promise<WorkDirectory> {
  const path = join(directory, "work");
  mkdirSync(path, { recursive: true, mode: 0o700 });
  if (bytes !== undefined) await mountDisk(directory, path, bytes);
  chownSync(path, user.uid, user.gid);
  chmodSync(path, 0o700);
  return {
    path,
    async isFull() {
      if (bytes === undefined) return false;
      const { bavail, bsize, ffree } = await statfs(path);
      return bavail * bsize < BYTES_PER_FILE || ffree === 0;
    },
  };
}

async function mountDisk(directory: string, path: string, bytes: number): Promise<void> {
  const file = join(directory, "disk");
  try {
    writeFileSync(file, "", { mode: 0o600 });
    const files = Math.min(MOST_FILES, Math.ceil(bytes / BYTES_PER_FILE));
    await exec("mke2fs", [
      ...[
        "-q",
        "-F",
        "-t",
        "ext4",
        "-m",
        "0",
        "-b",
        "4096",
        "-N",
        String(files),
        "-O",
        "^has_journal,^resize_inode",
      ],
      ...["-E", "lazy_itable_init=1,nodiscard", file, `${Math.ceil(bytes / 1024)}k`],
    ]);
    await exec("mount", ["-o", "loop,nosuid,nodev", file, path]);
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
  const path = join(directory, "work");
  // Once for each mount: a kill between mounting and reading leaves one, and nothing hides below it.
  while (isMounted(path)) await exec("umount", [path]).catch(() => exec("umount", ["-l", path]));
  const remove = () => rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  try {
    remove();
  } catch {
    openUp(directory);
    remove();
  }
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
