// A user's own /tmp, /var/tmp and /dev/shm, in directories that only root can enter. The holder of a shell mounts
// them over the host's before it becomes the user, so all shells of an allocation see the same ones and nobody
// else's. Shared memory has to stay in memory; the others are on disk, where nothing removes them by age.

import { lstatSync } from "node:fs";
import * as fs from "node:fs/promises";
import { join } from "node:path";
import { isErrno } from "@holdfast/kit/files";
import { assertOurs } from "./accounts.ts";
import { removeTree } from "./home.ts";

export type PrivateDirectory = { source: string; target: string };

const ON_DISK = "/var/lib/holdfast-tenants";
const IN_MEMORY = "/dev/shm/holdfast-tenants";

function privateDirectories(uid: number): PrivateDirectory[] {
  return [
    { source: `${ON_DISK}/${uid}/tmp`, target: "/tmp" },
    { source: `${ON_DISK}/${uid}/var-tmp`, target: "/var/tmp" },
    { source: `${IN_MEMORY}/${uid}/shm`, target: "/dev/shm" },
  ];
}

/** May be repeated. Throws where the host has no such place, or somebody else has taken it. */
export async function makePrivateDirectories(uid: number): Promise<PrivateDirectory[]> {
  assertOurs(uid);
  for (const parent of [ON_DISK, IN_MEMORY]) {
    await makeClosed(parent);
    await makeClosed(join(parent, String(uid)));
  }
  const directories = privateDirectories(uid);
  for (const { source } of directories) {
    await fs.mkdir(source).catch(unlessPresent);
    // Root's, like the ones they stand for; the agent's umask is another.
    await fs.chmod(source, 0o1777);
  }
  return directories;
}

export async function removePrivateDirectories(uid: number, signal?: AbortSignal): Promise<void> {
  assertOurs(uid);
  for (const parent of [ON_DISK, IN_MEMORY]) await removeTree(join(parent, String(uid)), signal);
}

/** /dev/shm is everybody's to write: a directory of that name may be anybody's. */
async function makeClosed(path: string): Promise<void> {
  await fs.mkdir(path, { mode: 0o700 }).catch(unlessPresent);
  const found = lstatSync(path);
  if (!found.isDirectory() || found.uid !== 0 || (found.mode & 0o077) !== 0)
    throw new Error(`${path} is not a directory that only root can enter.`);
}

function unlessPresent(error: unknown): void {
  if (!isErrno(error, "EEXIST")) throw error;
}
