// Which users of this host are ours: users.json in the agent's state directory. It is written before
// a user is made and kept until the user is gone, so that whatever a crash leaves can be found again.
// Reading and writing back happen in one turn: two tasks cannot overwrite each other's records.

import { randomInt } from "node:crypto";
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { isErrno, readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { z } from "zod";
import { UIDS } from "./accounts.ts";

const UserRecord = z.strictObject({
  allocation_id: z.string(),
  uid: z.int().min(UIDS.first).max(UIDS.last),
  /** `intended` may have made anything or nothing yet; `removing` may have removed anything or nothing. */
  state: z.enum(["intended", "made", "removing"]),
});
export type UserRecord = z.infer<typeof UserRecord>;

const Users = z.strictObject({
  /** uids are given in turn and not again soon: files outside the home outlive a user. */
  next_uid: z.int().min(UIDS.first).max(UIDS.last),
  users: z.record(z.string(), UserRecord),
});
type Users = z.infer<typeof Users>;

/** The file cannot be read, trusted or written. Without it nobody can say whose a user is. */
export class RecordsUnusable extends Error {
  override name = "RecordsUnusable";
}

export function readRecord(stateDir: string, name: string): UserRecord | undefined {
  const { users } = read(stateDir);
  // A user may be called `constructor`.
  return Object.hasOwn(users, name) ? users[name] : undefined;
}

export function writeRecord(stateDir: string, name: string, record: UserRecord): void {
  const all = read(stateDir);
  write(stateDir, { ...all, users: { ...all.users, [name]: record } });
}

export function removeRecord(stateDir: string, name: string): void {
  const all = read(stateDir);
  const { [name]: _removed, ...users } = all.users;
  write(stateDir, { ...all, users });
}

/** Records the intention with the next uid that is free; undefined when none of our range is left. */
export async function recordIntention(
  stateDir: string,
  name: string,
  allocationId: string,
  isTaken: (uid: number) => Promise<boolean>,
): Promise<UserRecord | undefined> {
  let uid = read(stateDir).next_uid;
  for (let tried = UIDS.first; tried <= UIDS.last; tried += 1, uid = following(uid)) {
    if (isRecorded(read(stateDir), uid) || (await isTaken(uid))) continue;
    const all = read(stateDir);
    if (isRecorded(all, uid)) continue;
    const record: UserRecord = { allocation_id: allocationId, uid, state: "intended" };
    write(stateDir, { next_uid: following(uid), users: { ...all.users, [name]: record } });
    return record;
  }
  return undefined;
}

function isRecorded({ users }: Users, uid: number): boolean {
  return Object.values(users).some((user) => user.uid === uid);
}

function following(uid: number): number {
  return uid === UIDS.last ? UIDS.first : uid + 1;
}

function read(stateDir: string): Users {
  const path = join(stateDir, "users.json");
  let text: string | undefined;
  try {
    if (!isOnlyOurs(path)) throw new RecordsUnusable(`${path} can be written by others than the agent.`);
    text = readFileIfPresent(path);
  } catch (error) {
    if (error instanceof RecordsUnusable) throw error;
    throw new RecordsUnusable(`${path} cannot be read: ${messageOf(error)}.`);
  }
  // Anywhere in the range: after a lost file, new users should not inherit what old ones left behind.
  if (text === undefined) return { next_uid: randomInt(UIDS.first, UIDS.last + 1), users: {} };
  try {
    return Users.parse(JSON.parse(text));
  } catch {
    throw new RecordsUnusable(`${path} does not hold what the agent writes there.`);
  }
}

function isOnlyOurs(path: string): boolean {
  try {
    const found = lstatSync(path);
    return found.isFile() && found.uid === process.geteuid?.() && (found.mode & 0o022) === 0;
  } catch (error) {
    if (isErrno(error, "ENOENT")) return true;
    throw error;
  }
}

function write(stateDir: string, users: Users): void {
  const path = join(stateDir, "users.json");
  try {
    writeFileDurably(path, `${JSON.stringify(users, null, 2)}\n`, 0o600);
  } catch (error) {
    throw new RecordsUnusable(`${path} cannot be written: ${messageOf(error)}.`);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
