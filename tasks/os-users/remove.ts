// Removes one of our users completely. Each step looks at what is there and may be repeated, so a
// crash at any point is repaired by running it again; the record goes last.

import type { TaskFailed } from "../executor.ts";
import { findAccount, findGroup, lockAccount, removeAccount, removeGroup, ToolRefused } from "./accounts.ts";
import { homeOf, mountsInHome, ownerOfHome, removeHome } from "./home.ts";
import { endProcesses } from "./processes.ts";
import { removeRecord, type UserRecord, writeRecord } from "./records.ts";

export type RemovalFailure = "user_not_ours" | "home_not_ours" | "home_has_mounts" | "processes_remain";

export type Removal = {
  stateDir: string;
  name: string;
  record: UserRecord;
  /** Called before each step. */
  enter: (phase: string) => void;
  signal?: AbortSignal;
  fail: (code: RemovalFailure, message: string) => TaskFailed;
};

export async function removeUser(removal: Removal): Promise<{ ended: number }> {
  const { stateDir, name, record, enter, signal, fail } = removal;
  await refuseWhatIsNotOurs(removal);
  enter("recording");
  writeRecord(stateDir, name, { ...record, state: "removing" });
  enter("locking");
  if (await findAccount(name)) await lockAccount(name);
  enter("ending_processes");
  const { ended, remaining } = await endProcesses(record.uid, { ...(signal && { signal }) });
  if (remaining > 0) throw fail("processes_remain", `${remaining} processes of ${name} do not end.`);
  enter("removing_home");
  await removeHome(name, signal);
  enter("removing_account");
  await removeAccountAndGroup(name, record.uid);
  enter("verifying");
  if ((await findAccount(name)) || (await ownerOfHome(name)) !== undefined)
    throw new Error(`${name} is still there after it was removed`);
  enter("forgetting");
  removeRecord(stateDir, name);
  return { ended };
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
