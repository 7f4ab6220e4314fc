// As whom the embedded server runs. PostgreSQL refuses to run as root, so root lends it an
// unprivileged account; anyone else runs it as oneself, and then there is no account here.

import { execFileSync } from "node:child_process";
import { existsSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import { UsageError } from "@holdfast/kit/settings";

export type Account = { name: string; uid: number; gid: number };

const preferredNames = ["holdfast", "nobody"];

/** `dataDirectory` may exist already: then its owner goes on running it, unless a user was named. */
export function chooseAccount(options: {
  runAs?: string;
  dataDirectory: string;
  uid?: number;
}): Account | undefined {
  const { runAs, dataDirectory, uid = process.getuid?.() } = options;
  if (uid !== 0) {
    if (runAs !== undefined && runAs !== lookUp(String(uid))?.name) {
      throw new UsageError(
        `HOLDFAST_POSTGRES_USER is ${JSON.stringify(runAs)}, but only root can run PostgreSQL as another user. ` +
          "Leave it unset: PostgreSQL then runs as you.",
      );
    }
    return undefined;
  }
  const owner = existsSync(dataDirectory) ? statSync(dataDirectory) : undefined;
  const names = runAs === undefined ? preferredNames : [runAs];
  const account =
    runAs === undefined && owner
      ? (lookUp(String(owner.uid)) ?? accountOf(owner))
      : names.map(lookUp).find((found) => found !== undefined);
  if (account === undefined || account.uid === 0) {
    throw new UsageError(
      `PostgreSQL cannot run as ${account?.name ?? names.join(" or ")}: it needs an existing user other than root. ` +
        "Name one in HOLDFAST_POSTGRES_USER.",
    );
  }
  if (owner && owner.uid !== account.uid) {
    throw new UsageError(
      `HOLDFAST_POSTGRES_USER is ${account.name}, but ${dataDirectory} belongs to user id ${owner.uid}. ` +
        `Unset it, or hand the database over: chown -R ${account.name} ${dataDirectory}`,
    );
  }
  return account;
}

/** The nearest directory on the way to `path` that this account may not enter. */
export function directoryThatBlocks(account: Account, path: string): string | undefined {
  const upwards: string[] = [];
  for (let at = nearestExisting(path); ; at = dirname(at)) {
    upwards.push(at);
    if (at === dirname(at)) break;
  }
  return upwards.reverse().find((directory) => !mayEnter(account, statSync(directory)));
}

function mayEnter(account: Account, stats: Stats): boolean {
  const bits = stats.uid === account.uid ? 0o100 : stats.gid === account.gid ? 0o010 : 0o001;
  return (stats.mode & bits) !== 0;
}

function nearestExisting(path: string): string {
  return existsSync(path) ? realpathSync(path) : nearestExisting(dirname(path));
}

/** Asks the system's user database, which may be more than /etc/passwd. */
function lookUp(nameOrId: string): Account | undefined {
  try {
    const [name, , uid, gid] = execFileSync("getent", ["passwd", nameOrId], { encoding: "utf8" }).split(":");
    return name && uid && gid ? { name, uid: Number(uid), gid: Number(gid) } : undefined;
  } catch {
    return undefined;
  }
}

function accountOf(stats: Stats): Account {
  return { name: String(stats.uid), uid: stats.uid, gid: stats.gid };
}
