// Which users of this host are ours: users.json in the agent's state directory. It is written before
// a user is made and kept until the user is gone, so that whatever a crash leaves can be found again.
// Reading and writing back happen in one turn: two tasks cannot overwrite each other's records.

import { randomInt } from "node:crypto";
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { isErrno, readFileIfPresent, writeFileDurably } from "@holdfast/kit/files";
import { UIDS } from "./accounts.ts";
import { Users } from "./records.generated.ts";

export type UserRecord = Users["users"][string];

const RANGE = UIDS.last - UIDS.first + 1;

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

/** What is known of uids outside of the records. */
export type UidFacts = {
  /** By another account or group of the host. */
  isTaken: (uid: number) => Promise<boolean>;
  /** Those of our range that own anything on this host. */
  owning: () => Promise<ReadonlySet<number>>;
};

/** Records the intention with the next uid that is free; undefined when none of our range is left. */
export async function recordIntention(
  stateDir: string,
  name: string,
  allocationId: string,
  facts: UidFacts,
): Promise<UserRecord | undefined> {
  const found = await tryRecording(stateDir, name, allocationId, facts);
  if (found) return found;
  await beginRound(stateDir, facts.owning);
  return tryRecording(stateDir, name, allocationId, facts);
}

async function tryRecording(
  stateDir: string,
  name: string,
  allocationId: string,
  { isTaken }: UidFacts,
): Promise<UserRecord | undefined> {
  // As long as there is no file, all of this goes by the one place that the first look chose.
  const first = read(stateDir);
  let uid = first.next_uid;
  for (let tried = 0; tried < RANGE; tried += 1, uid = following(uid)) {
    if (!isClean(read(stateDir, first), uid) || (await isTaken(uid))) continue;
    const all = read(stateDir, first);
    if (!isClean(all, uid)) continue;
    const record: UserRecord = { allocation_id: allocationId, uid, state: "intended" };
    const clean = all.clean - distance(all.next_uid, uid) - 1;
    // Of a removal that was never completed: whatever its uid owns is still there.
    const before = Object.hasOwn(all.users, name) ? all.users[name] : undefined;
    const quarantined = before ? [...all.quarantined, before.uid] : all.quarantined;
    const users = { ...all.users, [name]: record };
    write(stateDir, { next_uid: following(uid), clean, quarantined, users });
    return record;
  }
  return undefined;
}

/** A released uid is assigned again only after a search of the disks has found no files of it. */
export async function beginRound(stateDir: string, owning: UidFacts["owning"]): Promise<void> {
  const quarantined = [...(await owning())].sort();
  write(stateDir, { ...read(stateDir), clean: RANGE, quarantined });
}

export function cleanUids(stateDir: string): number {
  return read(stateDir).clean;
}

function isClean(all: Users, uid: number): boolean {
  return distance(all.next_uid, uid) < all.clean && !all.quarantined.includes(uid) && !isRecorded(all, uid);
}

/** How many uids after the first the second one is assigned. */
function distance(from: number, to: number): number {
  return (to - from + RANGE) % RANGE;
}

function isRecorded({ users }: Users, uid: number): boolean {
  return Object.values(users).some((user) => user.uid === uid);
}

function following(uid: number): number {
  return uid === UIDS.last ? UIDS.first : uid + 1;
}

/** `absent`: what holds when there is no file. */
function read(stateDir: string, absent?: Users): Users {
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
  if (text === undefined)
    return absent ?? { next_uid: randomInt(UIDS.first, UIDS.last + 1), clean: RANGE, quarantined: [], users: {} };
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
