// What a removed user leaves outside of its home. The user's processes must have ended before.
//
// Files to remove are searched in and below the directories that the user could write: those elsewhere with the same
// uid, such as in a container's image, were not made by it. Only files with the user's uid are removed, so a neighbour who
// renames directories during the walk gains nothing. A directory that holds somebody else's files becomes root's.

import { existsSync } from "node:fs";
import * as fs from "node:fs/promises";
import { isErrno } from "@holdfast/kit/files";
import { assertOurs, isOurs, UIDS } from "./accounts.ts";
import { isReachable, localFileSystems } from "./file-systems.ts";
import { find } from "./find.ts";
import { countIpc, removeIpc } from "./ipc.ts";

/** Written for users by programs with more rights than theirs. */
const spools = ["/var/spool/cron", "/var/spool/at", "/var/spool/mail", "/var/mail"];
/** Of a user's name, whoever owns them: another user of that name must not inherit them. */
const filesOfName = ["/var/spool/cron/crontabs", "/var/spool/cron", "/var/lib/systemd/linger", "/var/mail"];
/** `find` takes its roots as arguments, and there is a limit to those. */
const MOST_ROOTS = 500;
const REPORT_EVERY = 1_000;

type Looking = { signal?: AbortSignal | undefined };
type Sweeping = Looking & { onRemoved?: (count: number) => void };

/** Directories, in groups that are searched together. */
export type Places = readonly (readonly string[])[];
export type Leftovers = { files: number; ipc: number; unseen: number };

/** What cron and at would start for the user again. Removed before the user's processes are ended. */
export async function removeSchedules(name: string, uid: number, { signal }: Looking = {}): Promise<void> {
  assertOurs(uid);
  for (const directory of filesOfName) {
    await fs.unlink(`${directory}/${name}`).catch((error) => {
      if (!["ENOENT", "ENOTDIR", "EISDIR"].some((code) => isErrno(error, code))) throw error;
    });
  }
  await removeOwned(present(["/var/spool/cron", "/var/spool/at"]), uid, { signal });
}

/** How many files and IPC objects were removed. */
export async function removeLeftovers(
  uid: number,
  places: Places,
  { signal, onRemoved }: Sweeping = {},
): Promise<{ files: number; ipc: number }> {
  assertOurs(uid);
  const ipc = await removeIpc(uid);
  let files = 0;
  for (const roots of places) {
    const before = files;
    files += await removeOwned(roots, uid, { signal, onRemoved: (count) => onRemoved?.(before + count) });
  }
  return { files, ipc };
}

/** What is still the user's there. */
export async function countLeftovers(uid: number, places: Places, { signal }: Looking = {}): Promise<Leftovers> {
  assertOurs(uid);
  const { objects, unseen: unseenIpc } = await countIpc(uid);
  const left: Leftovers = { files: 0, ipc: objects, unseen: unseenIpc };
  for (const roots of places) {
    const { unseen } = await find(roots, [...isOf(uid), "-printf", "left\\0"], {
      onRecord: () => (left.files += 1),
      signal,
    });
    left.unseen += unseen;
  }
  return left;
}

/** Which uids of our range own anything on a local file system, wherever it is. Walks all of them completely. */
export async function owningUids({ signal }: Looking = {}): Promise<Set<number>> {
  const inRange = (id: "-uid" | "-gid") => ["(", id, `+${UIDS.first - 1}`, id, `-${UIDS.last + 1}`, ")"];
  const owning = new Set<number>();
  await find(localFileSystems(), ["(", ...inRange("-uid"), "-o", ...inRange("-gid"), ")", "-printf", "%U %G\\0"], {
    onRecord(record) {
      for (const id of record.split(" ").map(Number)) if (isOurs(id)) owning.add(id);
    },
    signal,
  });
  return owning;
}

/** The topmost directories that the user could write. Looks at directories only, so it stays quick on large disks. */
export async function writablePlaces(uid: number, { signal }: Looking = {}): Promise<Places> {
  assertOurs(uid);
  const places = present(spools);
  const isOfUser = ["(", ...isOf(uid), ")"];
  const closed = ["!", "-perm", "-0001", "!", ...isOfUser, "-prune"];
  const writable = ["(", "-perm", "-0002", "-o", "-uid", String(uid), "-o", "-gid", String(uid), ")"];
  await find(
    localFileSystems().filter(isReachable),
    ["-type", "d", "(", ...closed, "-o", ...writable, "-print0", "-prune", ")"],
    { onRecord: (path) => void places.push(path), signal },
  );
  const groups: string[][] = [];
  for (let at = 0; at < places.length; at += MOST_ROOTS) groups.push(places.slice(at, at + MOST_ROOTS));
  return groups;
}

async function removeOwned(
  roots: readonly string[],
  uid: number,
  { signal, onRemoved }: Sweeping,
): Promise<number> {
  let removed = 0;
  let kept = 0;
  const owned = ["-uid", String(uid), "(", "-delete", "-printf", "r\\0", "-o", "-printf", "k\\0", ")"];
  await find(roots, ["-depth", "(", ...owned, "-o", "-gid", String(uid), "-printf", "k\\0", ")"], {
    onRecord(record) {
      if (record === "k") kept += 1;
      else if (++removed % REPORT_EVERY === 0) onRemoved?.(removed);
    },
    signal,
  });
  if (kept > 0) await giveToRoot(roots, uid, { signal });
  return removed;
}

/** Directories with files of others in them, and files of others with the user's group. */
async function giveToRoot(roots: readonly string[], uid: number, { signal }: Looking): Promise<void> {
  const chown = (...args: string[]) => ["-execdir", "chown", "--no-dereference", ...args, "{}", "+"];
  const owned = ["-uid", String(uid), ...chown(`--from=${uid}`, "root:root")];
  const ofGroup = ["-gid", String(uid), ...chown(`--from=:${uid}`, ":root")];
  await find(roots, ["(", ...owned, "-o", ...ofGroup, ")"], { onRecord() {}, signal });
}

function isOf(uid: number): string[] {
  return ["(", "-uid", String(uid), "-o", "-gid", String(uid), ")"];
}

function present(paths: readonly string[]): string[] {
  return paths.filter((path) => existsSync(path));
}
