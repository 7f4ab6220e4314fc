// Where the server's Unix socket lies: in a directory that only its account and root can enter.
// Beside the database when the path is short enough; the kernel takes 107 bytes and no more.

import { createHash } from "node:crypto";
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isErrno, removeIfPresent } from "@holdfast/kit/files";
import { UsageError } from "@holdfast/kit/settings";
import type { Account } from "./account.ts";

export type SocketDirectory = { path: string; remove(): void };

const socketName = ".s.PGSQL.5432";
const longestPath = 107;

export function prepareSocketDirectory(directory: string, account: Account | undefined): SocketDirectory {
  const beside = join(directory, "run");
  const fits = Buffer.byteLength(join(beside, socketName)) <= longestPath;
  const path = fits ? beside : shortPath(directory);
  makePrivate(path, account);
  clear(path);
  return {
    path,
    remove: () => {
      clear(path);
      if (!fits) rmSync(path, { recursive: true, force: true });
    },
  };
}

/** The same for every start on this directory, so that a left-over socket is found and removed. */
function shortPath(directory: string): string {
  const uid = process.getuid?.() ?? 0;
  const ours = uid === 0 ? "/run" : `/run/user/${uid}`;
  const name = `holdfast-${createHash("sha256").update(directory).digest("hex").slice(0, 16)}`;
  return join(existsSync(ours) ? ours : "/tmp", name);
}

function makePrivate(path: string, account: Account | undefined): void {
  const uid = account?.uid ?? process.getuid?.();
  try {
    mkdirSync(path, { mode: 0o700 });
    if (account) chownSync(path, account.uid, account.gid);
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
  }
  const found = lstatSync(path);
  if (!found.isDirectory() || (found.uid !== uid && found.uid !== process.getuid?.())) {
    throw new UsageError(
      `${path} is in the way and belongs to user id ${found.uid}. Remove it, then start again.`,
    );
  }
  // A start that was killed between making and handing over left it ours.
  if (account && found.uid !== account.uid) chownSync(path, account.uid, account.gid);
  if ((found.mode & 0o777) !== 0o700) chmodSync(path, 0o700);
}

/** Call only when no server uses it: a lock that names a reused pid would keep the next one from starting. */
function clear(path: string): void {
  removeIfPresent(join(path, socketName));
  removeIfPresent(join(path, `${socketName}.lock`));
}
