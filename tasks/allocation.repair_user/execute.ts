// All checks come before the first change: a name, uid or home of somebody else is refused with nothing changed.
// Each step looks at what is there, so a run after a crash restores the rest.

import { userInfo } from "node:os";
import { executor, type Host, type TaskFailed } from "../executor.ts";
import {
  addAccount,
  addGroup,
  canRun,
  findAccount,
  findGroup,
  loginShell,
  setPrimaryGroup,
  setShell,
} from "../os-users/accounts.ts";
import { withHostFailures } from "../os-users/failures.ts";
import { homeOf, makeHome, ownerOfHome } from "../os-users/home.ts";
import { readRecord } from "../os-users/records.ts";
import type contract from "./contract.ts";

type Fail = (code: keyof typeof contract.failures, message?: string) => TaskFailed;
type Wanted = { name: string; allocationId: string; keys: readonly string[] };
type Step = (phase: string) => void;
type Part = "group" | "account" | "primary_group" | "shell" | "home";

export default executor<typeof contract>({
  async run({ params, progress, signal, host, fail }) {
    if (!host.capabilities.includes("os_users")) return checkOwnAccount(params.username, host, fail);
    const step = (phase: string) => {
      signal.throwIfAborted();
      progress(phase);
    };
    const { username: name, allocation_id: allocationId, ssh_keys: keys } = params;
    return withHostFailures(fail, async () => {
      step("checking");
      const uid = await recordedUid({ name, allocationId, keys }, host, fail);
      await refuseForeign(name, uid, fail);
      return repair({ name, allocationId, keys }, uid, step, fail);
    });
  },
});

function checkOwnAccount(username: string, host: Host, fail: Fail) {
  if (username !== host.account)
    throw fail("own_account_only", `The agent runs without root and cannot restore the user ${username}.`);
  const { uid, gid, homedir, shell } = userInfo();
  return {
    ...{ username, uid, gid, home: homedir, shell: shell ?? "/bin/sh" },
    ...{ restored: [], own_account: true, keys: 0 },
  };
}

/** The uid the user was created with. Without this allocation's record there is nothing to go by. */
async function recordedUid({ name, allocationId }: Wanted, { stateDir }: Host, fail: Fail): Promise<number> {
  const record = readRecord(stateDir, name);
  if (!record) {
    const account = await findAccount(name);
    throw account
      ? fail("user_not_ours", `The user ${name} with uid ${account.uid} was not created by Holdfast.`)
      : fail("user_not_recorded");
  }
  if (record.allocation_id !== allocationId)
    throw fail("user_taken", `The user ${name} on this node belongs to the allocation ${record.allocation_id}.`);
  if (record.state !== "made") throw fail("user_unfinished");
  return record.uid;
}

async function refuseForeign(name: string, uid: number, fail: Fail): Promise<void> {
  const account = await findAccount(name);
  if (account && account.uid !== uid)
    throw fail(
      "user_not_ours",
      `The user ${name} on this node has uid ${account.uid}; the allocation's user had ${uid}.`,
    );
  const group = await findGroup(name);
  if (group && group.gid !== uid)
    throw fail(
      "user_not_ours",
      `The group ${name} on this node has gid ${group.gid}; the allocation's group had ${uid}.`,
    );
  const holder = await findAccount(String(uid));
  if (holder && holder.name !== name)
    throw fail("uid_taken", `The uid ${uid} of ${name} now belongs to the user ${holder.name}.`);
  const groupHolder = await findGroup(String(uid));
  if (groupHolder && groupHolder.name !== name)
    throw fail("uid_taken", `The gid ${uid} of ${name} now belongs to the group ${groupHolder.name}.`);
  const home = homeOf(name);
  if (account && account.home !== home)
    throw fail("home_not_ours", `The home of ${name} is ${account.home}; it was created as ${home}.`);
  const owner = await ownerOfHome(name);
  if (owner !== undefined && owner !== uid)
    throw fail(
      "home_not_ours",
      typeof owner === "number"
        ? `${home} belongs to uid ${owner}; the uid of ${name} is ${uid}.`
        : `${home} is not a directory.`,
    );
}

async function repair({ name, allocationId, keys }: Wanted, uid: number, step: Step, fail: Fail) {
  const home = homeOf(name);
  const restored: Part[] = [];
  const restore = async (part: Part, work: Promise<void>) => {
    await work;
    restored.push(part);
  };
  step("restoring_group");
  if (!(await findGroup(name))) await restore("group", addGroup(name, uid));
  step("restoring_account");
  const account = await findAccount(name);
  if (!account) {
    const comment = `Holdfast allocation ${allocationId}`;
    await restore("account", addAccount({ name, uid, home, comment }));
  } else {
    if (account.gid !== uid) await restore("primary_group", setPrimaryGroup(name, uid));
    // One that refuses sessions, such as nologin, may be set on purpose.
    if (!canRun(account.shell)) await restore("shell", setShell(name, loginShell()));
  }
  step("restoring_home");
  if ((await ownerOfHome(name)) === undefined) await restore("home", makeHome(name, { uid, gid: uid }, keys));
  step("verifying");
  const after = await findAccount(name);
  const complete = after?.uid === uid && after.gid === uid && after.home === home && canRun(after.shell);
  if (!complete || (await ownerOfHome(name)) !== uid) throw fail("verification_failed");
  return {
    ...{ username: name, uid, gid: after.gid, home, shell: after.shell, restored },
    ...{ own_account: false, keys: restored.includes("home") ? keys.length : 0 },
  };
}
