// Removes one of our users completely: the undo of the phases that made it. Each step looks at what is there and may be
// repeated, so a crash at any point is repaired by running it again; the record goes last. While the record exists, no
// other user gets the uid.

import type { TaskFailed } from "../executor.ts";
import { undoPhases } from "../phases/phases.ts";
import { findAccount, findGroup, lockAccount, removeAccount, removeGroup, ToolRefused } from "./accounts.ts";
import { removeCgroups } from "./cgroups.ts";
import { homeOf, mountsInHome, ownerOfHome, removeHome } from "./home.ts";
import { countLeftovers, type Places, removeLeftovers, removeSchedules, writablePlaces } from "./leftovers.ts";
import { removePrivateDirectories } from "./private-directories.ts";
import { endProcesses } from "./processes.ts";
import type { UserRecord } from "./records.ts";
import { userPhase, userPhaseStore } from "./user-phases.ts";

export type RemovalFailure =
  | "user_not_ours"
  | "home_not_ours"
  | "home_has_mounts"
  | "processes_remain"
  | "files_remain";

export type Removal = {
  stateDir: string;
  name: string;
  record: UserRecord;
  /** Called before each step, and again with the count while files are removed. */
  enter: (phase: string, progress?: { files: number }) => void;
  signal?: AbortSignal;
  fail: (code: RemovalFailure, message: string) => TaskFailed;
};

export type Removed = { ended: number; files: number; ipc: number; unseen: number };

/** All of it, with the record. What is not ours is refused before anything is changed, the record included. */
export async function removeUser(removal: Removal): Promise<Removed> {
  const { stateDir, name, enter } = removal;
  await refuseWhatIsNotOurs(removal);
  const removed: Removed = { ended: 0, files: 0, ipc: 0, unseen: 0 };
  const user = userPhase(async () => void Object.assign(removed, await removeParts(removal)));
  await undoPhases({ phases: [user], context: undefined, store: userPhaseStore(stateDir, name), enter });
  return removed;
}

/** Everything but the record, which the caller keeps until this is done. */
export async function removeParts(removal: Removal): Promise<Removed> {
  const { name, record, enter, signal } = removal;
  const { uid } = record;
  await refuseWhatIsNotOurs(removal);
  enter("locking");
  if (await findAccount(name)) await lockAccount(name);
  enter("removing_schedules");
  await removeSchedules(name, uid, { signal });
  enter("ending_processes");
  const ended = await endAll(removal);
  enter("removing_home");
  await removeHome(name, signal);
  enter("removing_files");
  await removePrivateDirectories(uid, signal);
  removeCgroups(uid);
  // Nothing of the user runs that could make more of them.
  const places = await writablePlaces(uid, { signal });
  const { files, ipc } = await removeLeftovers(uid, places, {
    onRemoved: (count) => enter("removing_files", { files: count }),
    signal,
  });
  enter("removing_account");
  await removeAccountAndGroup(name, uid);
  enter("verifying");
  const unseen = await verify(removal, places);
  enter("forgetting");
  return { ended, files, ipc, unseen };
}

async function endAll({ name, record, signal, fail }: Removal): Promise<number> {
  const { ended, remaining } = await endProcesses(record.uid, { ...(signal && { signal }) });
  if (remaining > 0) throw fail("processes_remain", `${remaining} processes of ${name} do not end.`);
  return ended;
}

/** Returns how many places could not be looked into. */
async function verify({ name, record, signal, fail }: Removal, places: Places): Promise<number> {
  if ((await findAccount(name)) || (await ownerOfHome(name)) !== undefined)
    throw new Error(`${name} is still there after it was removed`);
  const { files, ipc, unseen } = await countLeftovers(record.uid, places, { signal });
  if (files + ipc > 0)
    throw fail(
      "files_remain",
      `The account of ${name} is removed, but ${files} files and ${ipc} IPC objects of its uid ${record.uid} could not be. ` +
        "The uid is not used again while they exist.",
    );
  return unseen;
}

async function refuseWhatIsNotOurs({ name, record, fail }: Removal): Promise<void> {
  const account = await findAccount(name);
  if (account && account.uid !== record.uid)
    throw fail(
      "user_not_ours",
      `The user ${name} of this host has uid ${account.uid}; the one that was made for the allocation had ${record.uid}.`,
    );
  const holder = await findAccount(String(record.uid));
  if (holder && holder.name !== name)
    throw fail("user_not_ours", `The uid ${record.uid} of ${name} belongs to the user ${holder.name} by now.`);
  const home = homeOf(name);
  if (account && account.home !== home)
    throw fail("home_not_ours", `The home of ${name} is ${account.home}, not ${home}; nothing was removed.`);
  const owner = await ownerOfHome(name);
  if (owner !== undefined && owner !== record.uid)
    throw fail("home_not_ours", `${home} does not belong to ${name}; nothing was removed.`);
  const [mount] = mountsInHome(name);
  if (mount) throw fail("home_has_mounts", `A file system is mounted on ${mount}; nothing was removed.`);
}

async function removeAccountAndGroup(name: string, uid: number): Promise<void> {
  if (await findAccount(name)) {
    // The tool counts processes that are over and wait for their parent; by now there are no others.
    if ((await removeAccount(name, { force: false })) === "busy") {
      const { remaining } = await endProcesses(uid);
      if (remaining > 0) throw new ToolRefused("userdel", { code: 8, stdout: "", stderr: `${name} is in use` });
      await removeAccount(name, { force: true });
    }
  }
  const group = await findGroup(name);
  if (group?.gid === uid) await removeGroup(name);
}
