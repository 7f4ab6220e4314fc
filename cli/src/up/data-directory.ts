// The directory that holds everything `holdfast up` must keep. It belongs to one supervisor at a
// time (lock.ts), and nobody else may read it; when another account runs the embedded PostgreSQL,
// that account may pass through, and no more.

import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { isErrno } from "@holdfast/kit/files";
import { UsageError } from "@holdfast/kit/settings";

export type DataDirectory = {
  path: string;
  lock: string;
  upFile: string;
  kek: string;
  operatorToken: string;
  /** By which workers of this machine dispatch steps. */
  dispatchToken: string;
  logs: string;
  postgres: string;
  /** State of the agent that `up` runs, unless a setting puts it elsewhere. */
  agent: string;
};

export function pathsIn(path: string): DataDirectory {
  return {
    path,
    lock: join(path, "lock"),
    upFile: join(path, "up.json"),
    kek: join(path, "kek"),
    operatorToken: join(path, "operator-token"),
    dispatchToken: join(path, "dispatch-token"),
    logs: join(path, "logs"),
    postgres: join(path, "postgres"),
    agent: join(path, "agent"),
  };
}

export function openDataDirectory(
  path: string,
  options: { othersPassThrough: boolean; uid?: number },
): DataDirectory {
  const paths = pathsIn(path);
  const uid = options.uid ?? process.getuid?.();
  try {
    mkdirSync(dirname(path), { recursive: true });
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const stats = statSync(path);
    refuseOwnedByOthers(path, stats, uid);
    refuseForeign(path, stats, readdirSync(path));
    for (const secret of [paths.kek, paths.operatorToken, paths.dispatchToken]) refuseSharedSecret(secret, uid);
    // The first file to be written: it distinguishes a data directory from any other directory.
    closeSync(openSync(paths.lock, "a", 0o600));
    chmodSync(path, options.othersPassThrough ? 0o711 : 0o700);
    mkdirSync(paths.logs, { mode: 0o700, recursive: true });
  } catch (error) {
    if (["EACCES", "EPERM", "EROFS", "ENOTDIR", "EEXIST"].some((code) => isErrno(error, code))) {
      throw new UsageError(
        `The data directory ${path} cannot be used: ${(error as Error).message}. ` +
          "Set HOLDFAST_DATA_DIR to one that you own.",
      );
    }
    throw error;
  }
  return paths;
}

/** For commands on an installation that runs: only its user may look into it. */
export function asItsUser<T>(dataDirectory: string, look: () => T): T {
  try {
    return look();
  } catch (error) {
    if (!isErrno(error, "EACCES") && !isErrno(error, "EPERM")) throw error;
    throw new UsageError(
      `The files in ${dataDirectory} belong to another user. Run this as the user who ran \`holdfast up\`, or \`holdfast login\`.`,
    );
  }
}

/** Its owner could put a token of their choice in it, also when root runs on it. */
function refuseOwnedByOthers(path: string, stats: Stats, uid: number | undefined): void {
  if (stats.uid === uid) return;
  throw new UsageError(
    `The data directory ${path} belongs to user id ${stats.uid}, and you are ${uid}. ` +
      "Run this as that user, or set HOLDFAST_DATA_DIR to a directory that you own.",
  );
}

function refuseSharedSecret(path: string, uid: number | undefined): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (stats.uid !== uid) {
    throw new UsageError(
      `${path} belongs to user id ${stats.uid}, who can read it. Remove it if it is not yours; ` +
        `if it is: chown ${uid} ${path}`,
    );
  }
  if ((stats.mode & 0o077) !== 0) {
    throw new UsageError(
      `Other users can read or change ${path}. If none did, fix its permissions: chmod 600 ${path}`,
    );
  }
}

/** A mistyped path must not change the permissions of /home or /tmp. */
function refuseForeign(path: string, stats: Stats, names: string[]): void {
  const sticky = (stats.mode & 0o1000) !== 0;
  const content = names.filter((name) => name !== "lost+found");
  if (sticky || (content.length > 0 && !content.includes("lock"))) {
    throw new UsageError(
      `The data directory ${path} contains other files. Set HOLDFAST_DATA_DIR to a new or empty directory.`,
    );
  }
}
